"""The parts of a task: clauses that each ask for something of their own, and what a task says it does not want.

Thin on purpose: a clause is split off only where it begins with a verb of doing or is a question, since the whole task
carries context that a clause lacks, and splitting by punctuation alone was measured to lose. "export invoices and
payroll to a file" stays one part; "find the open invoices, convert the totals and post a summary" has three.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcrib.retrieval.tokenize import content_words, query_terms
from toolcrib.retrieval.words import ACTION_VERBS, NEGATORS, OPENERS

MAX_PARTS = 8
MAX_FACETS = 16
_MIN_FACET_TERMS = 2
_MAX_OPENERS = 6
_SEPARATOR = re.compile(
    r"[.!?](?=\s|$)|[;\n。！？；，、]|,|\s&\s"
    r"|\b(?:and|then|after that|afterwards|plus|before|as well as)\b|然后|并且|接着|再",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?;\n]+(?=\s|$)|[。！？；]")
_FACET_SEPARATOR = re.compile(
    r"[.!?;:\n](?=\s|$)|[;\n—–。！？；，、]|,|\s&\s"
    r"|\b(?:and|then|after that|afterwards|plus|before|as well as|along with|also|while|so that|because|but|or)\b"
    r"|然后|并且|接着|再",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"(?:why|what|which|where|when|who|whose|how)\b", re.IGNORECASE)
_NEGATED = re.compile(
    r"(?<![\w'])(?:"
    + "|".join(re.escape(n) for n in NEGATORS)
    + r")\s[^.,;:!?\n]*?(?=[.,;:!?\n]|\b(?:but|and then|just|only)\b|$)",
    re.IGNORECASE,
)


def parts(task: str) -> tuple[str, ...]:
    """The task's parts in order; the task itself, alone, where it asks for one thing."""
    clauses: list[str] = []
    context = ""
    for piece, asks in _pieces(task):
        if asks or _begins_request(piece):
            clauses.append(f"{context} {piece}".strip())
            context = ""
        elif clauses:
            clauses[-1] = f"{clauses[-1]} {piece}"
        else:
            context = f"{context} {piece}".strip()
    told = [clause for clause in clauses if query_terms(clause)]
    return tuple(told[:MAX_PARTS]) if len(told) > 1 else (task,)


def facets(task: str, *, parts: Sequence[str] = ()) -> tuple[str, ...]:
    """All that a task seems to speak of, finer than its parts and overlapping: sentences, parts, pieces between marks.

    A facet need not be a request, so none is shown or counted; each only helps its tools up. Empty where the task is
    one short sentence. At most `MAX_FACETS`, longer units first.
    """
    text = wanted(task)
    units = (*_SENTENCE_END.split(text), *parts, *_FACET_SEPARATOR.split(text))
    whole = set(query_terms(text))
    told = [
        unit
        for unit in dict.fromkeys(unit.strip() for unit in units)
        if len(terms := query_terms(unit)) >= _MIN_FACET_TERMS and set(terms) != whole
    ]
    return tuple(told[:MAX_FACETS])


def wanted(text: str) -> str:
    """The text without what it forbids ("do not restart it"); the whole text where nothing else would be left."""
    kept = _NEGATED.sub(" ", text)
    return kept if query_terms(kept) else text


def _pieces(task: str) -> list[tuple[str, bool]]:
    """Pieces in order, and whether each is a question: begins with a word that asks, ends with a mark that does."""
    pieces = []
    start = 0
    for end in (*_SEPARATOR.finditer(task), None):
        piece = task[start : end.start() if end else len(task)].strip()
        if piece:
            pieces.append((piece, bool(end and end.group() in "?？" and _QUESTION.match(piece))))
        start = end.end() if end else start
    return pieces


def _begins_request(piece: str) -> bool:
    """Whether a verb of doing comes first, polite words aside, with something to do it to."""
    spoken = piece.lower().replace("'", " ").replace("’", " ").split()
    at = next((i for i, word in enumerate(spoken[: _MAX_OPENERS + 1]) if word not in OPENERS), len(spoken))
    return (
        at < len(spoken)
        and spoken[at].strip(":") in ACTION_VERBS
        and len(list(content_words(piece))) + (len(spoken) > at + 1) > 1
    )
