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
from toolcrib.review.phrases import PHRASES
from toolcrib.review.reading import Role, Text
from toolcrib.review.rules import RULES
from toolcrib.review.text import show

_Said: TypeAlias = tuple[str, Level, int, int, bool]
"""Rule, level, where it begins and ends, and whether it is a weak sign."""
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


def wording(read: Sequence[Text]) -> Iterator[Finding]:
    """Findings in what these texts say."""
    for text in read:
        if text.role not in (Role.KEYWORD, Role.KEY) and len(text.plain.text) > 5:
            yield from _in_text(text)


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


def _in_text(text: Text) -> Iterator[Finding]:
    said = _said(text.plain.text)
    strong = {rule for rule, _, _, _, weak in said if not weak}
    together = _apart(said)
    for rule, level, start, end, weak in said:
        if weak and rule in strong:
            continue
        shown = evidence(text, start, end)
        graded = level if not weak else Level.REVIEW if together else Level.INFO
        yield Finding(rule=rule, level=graded, pointer=text.pointer, evidence=shown, why=RULES[rule].title)


def _apart(said: Sequence[_Said]) -> bool:
    """Whether two families stand in different words: one phrase that two patterns know is one sign.

    Speaking to the model and ordering steps count as one: manuals of honest tools do both at once.
    """
    return any(
        _KIN.get(one[0], one[0]) != _KIN.get(other[0], other[0]) and (one[3] <= other[2] or other[3] <= one[2])
        for one, other in combinations(said, 2)
    )


@lru_cache(maxsize=1 << 14)
def _said(text: str) -> tuple[_Said, ...]:
    """What a text says, each rule once and once weakly; parameters of one server repeat, so answers are kept."""
    found: dict[tuple[str, bool], _Said] = {}
    for phrase in PHRASES:
        if (phrase.rule, phrase.weak) in found:
            continue
        for key in phrase.near:
            if key in text:
                match = phrase.pattern.search(text)
                if match is not None:
                    found[phrase.rule, phrase.weak] = (phrase.rule, phrase.level, *match.span(), phrase.weak)
                break
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
