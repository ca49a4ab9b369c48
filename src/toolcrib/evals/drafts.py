"""Drafts of cases from a catalog, for a person to correct: a beginning is easier to mend than an empty file.

Above: `cli/evals.py`. Beside it: `past.py`, which takes real requests from traces.

A draft is not a test. Its words come from the definition, so every search finds it; it measures something once somebody
has put it into the words of those who ask. Each carries the tag `draft`, and a note that says what to look at.

    direct      what one tool does            arguments   the same, naming what it works on
    compound    what two tools do             none        what this catalog has nothing for
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from toolcrib.evals.cases import Case
from toolcrib.retrieval.tokenize import split_identifier
from toolcrib.types import Tool

_SHARES = (("none", 0.3), ("compound", 0.12), ("arguments", 0.2))
"""Of 40 drafts 12 that nothing fits: `toolcrib calibrate` needs 8 whose confidence is above 0."""
_FRAMES = ("{}", "I need to {}", "can you {}?", "please {}", "help me {}")
_NAMING = frozenset("a all an each every everything how one the these what when where whether which who".split())
"""First words of a description that names a thing instead of saying what to do."""
_NOTHING = (
    "book me a table for two at an Italian restaurant on Friday",
    "order a pair of running shoes in size 43",
    "what should I cook with leeks and potatoes?",
    "find me a dentist who has time tomorrow",
    "tune the piano in the living room",
    "write a poem about the first snow",
    "how do I get a red wine stain out of a carpet?",
    "rent a rowing boat for Sunday morning",
    "which vaccinations does my puppy need?",
    "plan a hike in the Dolomites with an overnight stay",
    "who won the chess olympiad in 1972?",
    "knit a scarf for my nephew",
    "water my tomatoes while I am away",
    "teach me three chords on the ukulele",
    "recommend a novel set in Lisbon",
    "reserve two seats in the cinema for tonight",
    "compare the interest rates of three savings banks for my daughter",
    "find a sitter for our cat from Monday to Friday",
    "print our holiday pictures as a calendar",
    "get the brakes of my bicycle repaired before the weekend",
    "send my grandmother a bunch of tulips",
    "measure the kitchen and order new curtains",
    "apply for a parking permit at the town hall",
    "renew my library card",
    "show me yoga exercises for a stiff neck",
    "list the birds that breed in marshland",
    "translate the inscription on this Roman coin",
    "predict the winner of the next cup final",
    "set the heating to 19 degrees when I leave the house",
    "transcribe the voice message from my landlord",
    "cancel my membership of the gym",
    "check whether my passport is still valid in July",
    "update the firmware of the dishwasher",
    "create a family tree from these parish records",
    "schedule the chimney sweep for October",
    "order a replacement for a cracked roof tile",
    "search for a used piano within 50 kilometres",
    "file a complaint about the noise of the neighbours",
    "export the notes of my violin pieces as sheet music",
    "track how many glasses of water I drink a day",
)
_MAX_CHARS = 160
_MIN_CHARS = 12
_SENTENCE = re.compile(r"(?<=[.!?])\s|\n")
_OPENINGS = re.compile(r"^(this (tool|function|endpoint)\s*(is used to|can|will)?|(a )?tool (to|that|for)|use (this|it) to|used to|allows you to)\s+", re.I)  # fmt: skip # noqa: E501


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachable:
    """A tool, and the callers who can be offered it: names as a case holds them, None for the local operator."""

    tool: Tool
    callers: tuple[str | None, ...]


def drafted(
    reachable: Sequence[Reachable],
    *,
    n: int,
    seed: int,
    confidence: Callable[[str], float],
    nearest: Callable[[Tool], str],
) -> tuple[Case, ...]:
    """About `n` drafts, spread over servers and callers; fewer where the catalog has too few tools.

    Args:
        confidence: of the search that something fits a task, for choosing what nothing fits.
        nearest: the tool whose definition is closest to this one, or "".
    """
    chance = random.Random(seed)  # noqa: S311 - drafts, not secrets
    order = _spread([one for one in reachable if request_of(one.tool)], chance)
    wanted = {kind: round(share * n) for kind, share in _SHARES}
    cases = _nothing(wanted["none"], reachable, confidence)
    n_single = max(0, n - len(cases) - wanted["compound"])
    for number, one in enumerate(order[:n_single]):
        with_arguments = number < wanted["arguments"]
        frame = _FRAMES[number % len(_FRAMES)]
        task, used = _with_arguments(one.tool) if with_arguments else (request_of(one.tool), False)
        near = nearest(one.tool)
        note = "put it into your users' words"
        note += f"; does {near} do it, too? then add it to expect, else to forbid" if near else ""
        kind = "arguments" if used else "direct"
        cases.append(_case(frame.format(task), [one], kind=kind, note=note, number=len(cases)))
    pairs = _pairs(order[n_single:] + order[:n_single], wanted["compound"])
    for first, second in pairs:
        task = f"{request_of(first.tool)}, and then {request_of(second.tool)}"
        cases.append(
            _case(task, [first, second], kind="compound", note="would anybody ask for both?", number=len(cases))
        )
    return tuple(cases)


def request_of(tool: Tool) -> str:
    """What a tool does as a request, from its description's first sentence; "" where there is none to speak of."""
    text = " ".join(re.sub(r"[*_`#]+", " ", tool.description).split())
    first = _OPENINGS.sub("", _SENTENCE.split(text, maxsplit=1)[0]).rstrip(".:;,! ")
    if len(first) < _MIN_CHARS or len(first) > _MAX_CHARS or not first[0].isalpha():
        return ""
    head, _, rest = first.partition(" ")
    if head.lower() in _NAMING:
        return f"show me {head.lower()} {rest}"
    head = head if head.isupper() else _imperative(head[0].lower() + head[1:])
    return f"{head} {rest}".strip()


def _imperative(word: str) -> str:
    """`returns` -> `return`, `searches` -> `search`; other words as they are."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "ches", "shes", "xes", "zes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _with_arguments(tool: Tool) -> tuple[str, bool]:
    """The request, naming up to two required arguments, and whether there were any."""
    required = tool.input_schema.get("required")
    names = (
        [split_identifier(name).lower() for name in required if isinstance(name, str)]
        if isinstance(required, list)
        else []
    )
    names = [name for name in names if name and name not in request_of(tool).lower()][:2]
    if not names:
        return request_of(tool), False
    return f"{request_of(tool)}; I have the {' and the '.join(names)}", True


def _spread(reachable: Sequence[Reachable], chance: random.Random) -> list[Reachable]:
    """One of each server, then a second of each, and so on, in a shuffled order within each."""
    by_server: dict[str, list[Reachable]] = {}
    for one in reachable:
        by_server.setdefault(one.tool.server_id, []).append(one)
    for tools in by_server.values():
        chance.shuffle(tools)
    deepest = max(map(len, by_server.values()), default=0)
    return [tools[depth] for depth in range(deepest) for _id, tools in sorted(by_server.items()) if depth < len(tools)]


def _nothing(n: int, reachable: Sequence[Reachable], confidence: Callable[[str], float]) -> list[Case]:
    """Requests that this catalog most surely has nothing for, and of which search says more than a plain no."""
    if not reachable:
        return []
    told = {task: confidence(task) for task in _NOTHING}
    order = sorted(_NOTHING, key=lambda task: (told[task] <= 0, told[task], task))[:n]
    callers = list(dict.fromkeys(name for one in reachable for name in one.callers))
    note = "make sure that no tool does this; better: what your users ask for in vain"
    return [
        Case(
            case_id=f"draft-none-{number + 1}",
            task=task,
            caller=callers[number % len(callers)],
            expect=None,
            tags=("draft", "none"),
            note=note,
        )
        for number, task in enumerate(order)
    ]


def _pairs(order: Sequence[Reachable], n: int) -> list[tuple[Reachable, Reachable]]:
    """Pairs that one caller can be offered both of, of two servers where there are two."""
    pairs: list[tuple[Reachable, Reachable]] = []
    left = list(order)
    several = len({one.tool.server_id for one in order}) > 1
    while len(pairs) < n and left:
        first = left.pop(0)
        second = next(
            (
                one
                for one in left
                if set(one.callers) & set(first.callers) and (not several or one.tool.server_id != first.tool.server_id)
            ),
            None,
        )
        if second is not None:
            left.remove(second)
            pairs.append((first, second))
    return pairs


def _case(task: str, tools: Sequence[Reachable], *, kind: str, note: str, number: int) -> Case:
    both = [name for name in tools[0].callers if all(name in one.callers for one in tools)]
    caller = both[number % len(both)]
    slug = "-".join(re.sub(r"[^a-z0-9]+", "-", one.tool.name.lower()).strip("-")[:30] for one in tools)
    return Case(
        case_id=f"draft-{number + 1}-{slug}",
        task=task,
        caller=caller,
        expect=tuple(frozenset({one.tool.tool_id}) for one in tools),
        tags=("draft", kind),
        note=note,
    )


def reachable_of(tools: Sequence[Tool], reach: Mapping[str | None, frozenset[str]]) -> tuple[Reachable, ...]:
    """The tools that somebody can be offered, each with who.

    Args:
        reach: a caller's name, None for the local operator -> ids of the tools in its reach.
    """
    found = []
    for tool in tools:
        callers = tuple(name for name, ids in reach.items() if tool.tool_id in ids)
        if callers:
            found.append(Reachable(tool=tool, callers=callers))
    return tuple(found)
