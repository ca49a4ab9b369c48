"""Whether a tool stands in for another server's: by its name, or by its name and words.

Above: `lint.py`. Below: `surroundings.py` finds who is near without comparing all pairs.

Honest tools share names (one in 25), and forks share whole texts: alike alone is information. A name that only looks
the same, or that adds a word of trust to another's, is not honest by chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolcrib.review.confusables import as_read
from toolcrib.review.findings import Finding, Level
from toolcrib.review.normal import skeleton
from toolcrib.review.rules import RULES
from toolcrib.review.sketch import likeness, sketch
from toolcrib.review.surroundings import Neighbour, Surroundings, name_words
from toolcrib.review.text import show

_PRAISE = (
    "official|secure|secured|safe|safer|trusted|verified|real|genuine|best|better|pro|plus|premium|enhanced|improved|ultimate|fixed|"
    "updated|faster|preferred|recommended"
)
_PRAISED = re.compile(
    rf"^(?:(?:{_PRAISE})[_\-.]+(?P<after>.{{4,}})|(?P<before>.{{4,}}?)[_\-.]+(?:{_PRAISE}))$", re.IGNORECASE
)
_MAX_TWINS = 3
_ALIKE = 0.8
_MIN_NAME, _MAX_NAME = 6, 256


def shadowing(
    name: str, description: str, around: Surroundings, *, parameters: frozenset[str] = frozenset()
) -> Iterator[Finding]:
    """Findings about how this tool stands to other servers' tools, and to its own siblings."""
    same = around.elsewhere(name)
    original = _in_plain_letters(name, same)
    if original:
        yield _finding("name-lookalike", Level.BLOCK, "/name", f"{show(name)} looks like {_told(original)}")
    elif same:
        yield _finding(
            "same-name-elsewhere", Level.INFO, "/name", ", ".join(sorted({one.server_id for one in same})[:5])
        )
    if imitated := _imitated(name, around):
        yield _finding("name-variant", Level.REVIEW, "/name", f"{show(name)} beside {_told(imitated)}")
    if twin := _variant_of(name, description, parameters, around):
        yield _finding("sibling-variant", Level.REVIEW, "/name", f"{show(name)} beside {show(twin)}")
    if clone := _clone(name, description, around):
        yield _finding("near-clone", Level.INFO, "/description", f"like {_told(clone)}")


def _in_plain_letters(name: str, same: tuple[Neighbour, ...]) -> Neighbour | None:
    """The tool whose plain name this one spells in lookalike letters."""
    if name.isascii() or not (as_read(name)[1] or not as_read(name)[0].isascii()):
        return None
    return next((one for one in same if one.name.isascii()), None)


def _imitated(name: str, around: Surroundings) -> Neighbour | None:
    """The other server's tool that this name adds praise to; none if the plain name is a sibling's as well."""
    found = _PRAISED.match(name) if len(name) <= _MAX_NAME else None
    if found is None:
        return None
    plain = found["after"] or found["before"]
    if len(plain) < _MIN_NAME or around.is_own(plain):
        return None
    return next(iter(around.elsewhere(plain)), None)


def _variant_of(name: str, description: str, parameters: frozenset[str], around: Surroundings) -> str:
    """The sibling that this one is a variant of: parameters that hold the other's, and either a name that differs in a
    version alone, or the very words under a name that differs in one.

    A description that many siblings share, or that says nothing of the tool, is boilerplate and tells nothing.
    """
    own, twins = name_words(name), around.same_text(description)
    told = len(twins) <= _MAX_TWINS and bool(set(own) & set(name_words(description)))
    near = [twin for twin in twins if told and _one_word_apart(own, name_words(twin.name))]
    for twin in (*around.versions(name), *near):
        if twin.name != name and (parameters <= twin.parameters or twin.parameters <= parameters):
            return twin.name
    return ""


def _one_word_apart(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether they are equal, or one of them has a single word more."""
    short, long = sorted((one, other), key=len)
    n_same = next((n for n, words in enumerate(zip(short, long, strict=False)) if words[0] != words[1]), len(short))
    return bool(short) and short[n_same:] in (long[n_same:], long[n_same + 1 :])


def _clone(name: str, description: str, around: Surroundings) -> Neighbour | None:
    marks = sketch(description)
    ones = [one for one in around.near(description) if likeness(marks, one.sketch) >= _ALIKE]
    own = skeleton(name)
    return next((one for one in ones if _close(own, skeleton(one.name))), None)


def _close(one: str, other: str) -> bool:
    """Whether two names read alike, or one holds the other."""
    return one == other or (min(len(one), len(other)) >= _MIN_NAME and (one in other or other in one))


def _told(one: Neighbour) -> str:
    return f"{show(one.name)} of {one.server_id}"


def _finding(rule: str, level: Level, pointer: str, evidence: str) -> Finding:
    return Finding(rule=rule, level=level, pointer=pointer, evidence=evidence, why=RULES[rule].title)
