"""What the words of a definition ask for, judged text by text.

One strong phrase is a finding. Weak ones ("never mention ...", "for all later requests") have honest uses; two families
of them in one text seldom do.

Above: `lint.py`. Below: `phrases.py` holds the patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import TypeAlias

from toolcrib.review.findings import Finding, Level
from toolcrib.review.phrases import PHRASES, Phrase
from toolcrib.review.reading import Role, Text
from toolcrib.review.rules import RULES
from toolcrib.review.surroundings import ALONE, Surroundings
from toolcrib.review.text import show

_Said: TypeAlias = tuple[Phrase, int, int]
"""What was said, and where it begins and ends."""
_NAME = re.compile(r"(?<=[`'\"])\w[\w-]*(?=[`'\"(])|\b\w+(?:[_-]\w+)+\b|\b\w+(?=\(\)| tool\b)")
"""Written as a name; a word of the language is one only in quotes, or before "tool"."""
_AGENTS_OWN = re.compile(
    r"\b(?:system ?prompts?|system message|tools? list|list of tools|available ?tools|tool ?call ?history|"
    r"chain ?of ?thought|"
    r"(?:full|entire|complete|whole|raw) (?:conversation|chat|context)|(?:conversation|chat) (?:history|log|"
    r"transcript|so far)|"
    r"(?:hidden|internal|assistant|agent|llm|model)(?:'?s)? (?:\w+ )?(?:instructions|reasoning|prompts?|memory|"
    r"context)|"
    r"previous (?:messages|tool results|tool outputs)|user memory|model memory)\b"
)
_WHICH_MODEL = re.compile(
    r"\b(?:llm|(?:calling|language|ai) model)(?: model)?(?:'?s)? (?:name|id|identity|version|vendor)\b"
)
_MODEL_WORK = re.compile(
    r"prompt|\bllms?\b|\bmodels?\b|assistant|\bagents?\b|\bchat|conversation|completion|message|\bai\b|gpt|claude|"
    r"gemini|reason|think|thought|memor",
    re.IGNORECASE,
)
_KIN = {"steers-the-agent": "addresses-the-model"}
_AROUND = 40
_MAX_SHOWN = 200


def wording(read: Sequence[Text], around: Surroundings = ALONE) -> Iterator[Finding]:
    """Findings in what these texts say.

    Args:
        around: tells the names of the server's own tools from others.
    """
    for text in read:
        if text.role not in (Role.KEYWORD, Role.KEY) and len(text.plain.text) > 5:
            yield from _in_text(text, around)


def asked_for(read: Sequence[Text], about: str) -> Iterator[Finding]:
    """Parameters named for what belongs to the agent, of a tool whose own work is not with such things.

    Args:
        about: the tool's name and description.
    """
    name = next((text.plain.text for text in read if text.role is Role.NAME), "")
    for text in read:
        if text.role is not Role.PARAMETER_NAME:
            continue
        # Which model asks is what a description explains away with the very words of honest work with models.
        for pattern, own_work in ((_AGENTS_OWN, about), (_WHICH_MODEL, name)):
            found = pattern.search(text.plain.text)
            if found is None:
                continue
            yield Finding(
                rule="harvests-conversation",
                level=Level.INFO if _MODEL_WORK.search(own_work) else Level.REVIEW,
                pointer=text.pointer,
                evidence=show(found[0]),
                why=RULES["harvests-conversation"].title,
            )


def _in_text(text: Text, around: Surroundings) -> Iterator[Finding]:
    said = [one for one in _said(text.plain.text) if not (one[0].outward and _names_its_own(text, one, around))]
    told = {phrase.rule for phrase, _, _ in said if not phrase.weak}
    together = _apart(said)
    for phrase, start, end in said:
        if phrase.weak and phrase.rule in told:
            continue
        told.add(phrase.rule)
        graded = phrase.level if not phrase.weak else Level.REVIEW if together else Level.INFO
        yield Finding(
            rule=phrase.rule,
            level=graded,
            pointer=text.pointer,
            evidence=evidence(text, start, end),
            why=RULES[phrase.rule].title,
        )


def _names_its_own(text: Text, said: _Said, around: Surroundings) -> bool:
    """Whether the sentence in which something is said names a tool of the same server."""
    whole, (_, start, end) = text.plain.text, said
    first = max(whole.rfind(mark, 0, start) for mark in (". ", "! ", "? ")) + 1
    last = min((place for mark in (". ", "! ", "? ") if (place := whole.find(mark, end)) >= 0), default=len(whole))
    return any(around.is_own(name) for name in _NAME.findall(whole[first:last]))


def _apart(said: Sequence[_Said]) -> bool:
    """Whether two families stand in different words: one phrase that two patterns know is one sign.

    Speaking to the model and ordering steps count as one: manuals of honest tools do both at once.
    """
    return any(
        _KIN.get(one[0].rule, one[0].rule) != _KIN.get(other[0].rule, other[0].rule)
        and (one[2] <= other[1] or other[2] <= one[1])
        for one, other in combinations(said, 2)
    )


@lru_cache(maxsize=1 << 14)
def _said(text: str) -> tuple[_Said, ...]:
    """What a text says, each rule once of a kind; parameters of one server repeat, so answers are kept."""
    found: dict[tuple[str, bool, bool], _Said] = {}
    for phrase in PHRASES:
        kind = phrase.rule, phrase.weak, phrase.outward
        if kind in found:
            continue
        if any(key in text for key in phrase.near) and (match := phrase.pattern.search(text)):
            found[kind] = (phrase, *match.span())
    return tuple(found.values())


def evidence(text: Text, start: int, end: int) -> str:
    """The words that struck with some around them: as received where they stand so, else as read."""
    words = text.plain.text[start:end].strip()
    found = re.search(r"\s+".join(map(re.escape, words.split())), text.raw, re.IGNORECASE) if words else None
    return snippet(text.raw, *found.span()) if found else snippet(text.plain.text, start, end)


def snippet(source: str, start: int, end: int) -> str:
    """A place of a text with some words around it, on one line, safe to print."""
    first, last = max(0, start - _AROUND), min(len(source), min(end, start + _MAX_SHOWN) + _AROUND)
    shown = " ".join(show(source[first:last]).split())
    return ("…" if first else "") + shown + ("…" if last < len(source) else "")
