"""`toolcrib learn`: from the operator's own traces to a learned file, with a report on requests that were kept aside.

    traces ─▶ uses (a request, and what was called for it) ─▶ audiences (a tenant, a reach) ─▶ older uses: tuning
                                                                                              newest uses: before, after
Floor 4. Above: `cli/learn.py`. Below: `uses.py`, `retrieval/tuning.py`, the pipeline in force.

Invariants
1. A use counts for an audience only if everything that was in its caller's reach then is in the audience's reach now,
   by id; a called tool only if its definition is still the one that was called (I1).
2. What is measured is what is written: nothing is learned from the requests kept aside.
3. A part that does not find more on them is left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from toolcrib.errors import ConfigError
from toolcrib.evals.statistics import Difference, paired
from toolcrib.pipeline import Pipeline
from toolcrib.retrieval.learning import ANY_TENANT, Learned, Part
from toolcrib.retrieval.search import View
from toolcrib.retrieval.tuning import Example, fit
from toolcrib.store.protocol import Store
from toolcrib.trace.answered import Offered
from toolcrib.types import BoolArray, IntArray
from toolcrib.uses import Use, read_log

MAX_USES = 10_000
"""Of one audience; the newest count."""
DEPTHS = (1, 5, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Callers of one tenant with one reach now.

    Args:
        reach: bool, shape (n_tools,). uses: those that count, oldest first.
    """

    tenant: str
    reach: BoolArray
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one audience's part does for requests it was not learned from.

    Args:
        before, after: recall at `DEPTHS`, 0 to 1. gain: of their mean, with its interval.
        n_learned, n_held_out: different requests. n_repeated: held out, and asked before in the same words.
        kept: whether the part is written. why: if it is not.
    """

    tenant: str
    n_tools: int
    n_learned: int
    n_held_out: int
    n_repeated: int = 0
    n_subjects: int = 0
    n_pieces: int = 0
    n_precedents: int = 0
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    gain: Difference | None = None
    kept: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of it.

    Args:
        n_left_out: uses that count for no audience: made while other tools were in reach.
        lacking: where there is too little to learn from: how much there is, how much it takes, and what to do.
    """

    n_requests: int
    n_uses: int
    n_unused: int
    n_unreadable: int
    n_left_out: int
    complete: bool
    audiences: tuple[Measured, ...]
    lacking: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnOptions:
    """How `learn` learns.

    Args:
        holdout: share of the newest requests that are kept aside, above 0, at most 0.5.
        min_requests, min_subjects: different requests, and people, that a part must rest on.
        across_tenants: pool the requests of all tenants.
        force: write parts that do not find more, too.
    """

    holdout: float = 0.2
    min_requests: int = 20
    min_subjects: int = 2
    across_tenants: bool = False
    force: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.holdout <= 0.5:
            raise ConfigError(f"the part held out must be above 0 and at most 0.5, got {self.holdout}")
        if self.min_requests < 1 or self.min_subjects < 1:
            raise ConfigError("a part rests on 1 request of 1 person or more")


def learn(
    store: Store,
    pipeline: Pipeline,
    *,
    since: str,
    offer_ttl_s: float,
    made: str,
    options: LearnOptions | None = None,
    on_progress: Callable[[str], None] = lambda _text: None,
) -> tuple[Learned, Report]:
    """What the traces since a moment teach, for each audience that has enough of them.

    Args:
        since: ISO 8601, UTC. made: now, likewise.
        offer_ttl_s: seconds after a request in which a call still belongs to it.
    Raises:
        ConfigError: there is no index with vectors to learn for, or a tenant has the name that stands for all.
    """
    chosen = options or LearnOptions()
    index = pipeline.index
    if index is None or index.degraded or index.model_id == "none":
        raise ConfigError("there are no vectors to learn for", hint="set [retrieval] embedder")
    log = read_log(store, since=since, offer_ttl_s=offer_ttl_s)
    on_progress(f"{log.n_requests} requests, {len(log.uses)} with a call that counts")
    audiences, n_left_out = audiences_of(log.uses, pipeline, across_tenants=chosen.across_tenants)
    parts, measured = [], []
    for number, audience in enumerate(audiences, start=1):
        on_progress(f"audience {number} of {len(audiences)}: {len(audience.uses)} requests")
        part, found = _learned(audience, pipeline, index.model_id, chosen, on_progress)
        measured.append(found)
        if part is not None and found.kept:
            parts.append(part)
    report = Report(
        n_requests=log.n_requests,
        n_uses=len(log.uses),
        n_unused=log.n_unused,
        n_unreadable=log.n_unreadable,
        n_left_out=n_left_out,
        complete=log.complete,
        audiences=tuple(measured),
    )
    return Learned(parts=tuple(parts), made=made), replace(report, lacking=_lacking(report, chosen))


def _lacking(report: Report, options: LearnOptions) -> tuple[str, ...]:
    if any(found.before for found in report.audiences):
        return ()
    if not report.n_requests:
        return ("there is no request in this time: let callers ask first, or take an earlier --since",)
    if not report.n_uses:
        return (
            f"after none of {report.n_requests} requests a call counts: callers must call what a request offered them, "
            "through this crib and within [gate] offer_ttl_s; clients that call other ways teach nothing",
        )
    if not report.audiences:
        return (f"all {report.n_uses} requests with a call were made while tools were in reach that nobody has now",)
    most = max(report.audiences, key=lambda found: (found.n_learned + found.n_held_out, found.n_subjects))
    needed = math.ceil(options.min_requests / (1 - options.holdout))
    told = [
        f"at most {most.n_learned + most.n_held_out} different requests of {most.n_subjects} people count together; it "
        f"takes about {needed} of {options.min_subjects} people, {options.holdout:.0%} of them kept aside to measure",
        "collect more, or read more of the past with --since; --min-requests lowers the bound, at the price of a part "
        "that rests on few",
    ]
    if most.n_subjects < options.min_subjects:
        told.append("where one person alone uses this crib, --min-subjects 1 is right")
    return tuple(told)


# --- who may learn from whom


def audiences_of(
    uses: Sequence[Use], pipeline: Pipeline, *, across_tenants: bool = False
) -> tuple[list[Audience], int]:
    """(audiences, most uses first; uses that count for none).

    An audience is a tenant and a reach that its callers have now. A use counts for it if all that its own caller could
    reach then is in that reach. Of audiences with the same uses the one with fewest tools stays: its part counts for
    the others, too.

    Raises:
        ConfigError: a tenant has the name that stands for all of them.
    """
    if not across_tenants and any(use.tenant == ANY_TENANT for use in uses):
        raise ConfigError(
            f"a tenant is called {ANY_TENANT}, which stands for all tenants in a learned file: "
            "what its callers asked would count for everybody",
            hint="give that tenant another name and learn from later traces (--since), or use --across-tenants",
        )
    ids = np.array([tool.tool_id for tool in pipeline.snapshot.tools], dtype=object)
    reaches: dict[tuple[str, bytes], BoolArray] = {}
    for use in uses:
        reach = pipeline.view(use.caller, use.channel).reach
        reaches[(ANY_TENANT if across_tenants else use.tenant, np.packbits(reach).tobytes())] = reach
    counted: set[int] = set()
    by_uses: dict[tuple[str, tuple[int, ...]], Audience] = {}
    for (tenant, _), reach in sorted(reaches.items(), key=lambda item: (int(item[1].sum()), item[0])):
        known = frozenset(ids[reach].tolist())
        fits = _Fits(known)
        mine = tuple(n for n, use in enumerate(uses) if tenant in (ANY_TENANT, use.tenant) and fits.within(use.reach))
        counted.update(mine)
        if mine:
            audience = Audience(tenant=tenant, reach=reach, uses=tuple(uses[n] for n in mine[-MAX_USES:]))
            by_uses.setdefault((tenant, mine), audience)
    found = sorted(by_uses.values(), key=lambda a: (-len(a.uses), -int(a.reach.sum()), a.tenant))
    return found, len(uses) - len(counted)


class _Fits:
    """Whether reaches are within one; each is looked at once."""

    def __init__(self, known: frozenset[str]) -> None:
        self._known = known
        self._told: dict[int, bool] = {}

    def within(self, reach: frozenset[str]) -> bool:
        # The same reach is the same object: `_Reader` makes each once and the uses keep it alive.
        if id(reach) not in self._told:
            self._told[id(reach)] = reach <= self._known
        return self._told[id(reach)]


# --- learning and measuring


def _learned(
    audience: Audience,
    pipeline: Pipeline,
    model_id: str,
    options: LearnOptions,
    on_progress: Callable[[str], None],
) -> tuple[Part | None, Measured]:
    tools = [pipeline.snapshot.tools[number] for number in np.flatnonzero(audience.reach)]
    place = {(tool.tool_id, tool.digest): position for position, tool in enumerate(tools)}
    uses = [use for use in audience.uses if any(row in place for row in use.called)]
    older, newest = _split(uses, share=options.holdout)
    learned, held_out = _examples(older, place), _examples(newest, place)
    subjects = {subject for example in learned for subject in example.subjects}
    told = {_said(example.text) for example in learned}
    found = Measured(
        tenant=audience.tenant,
        n_tools=len(tools),
        n_learned=len(learned),
        n_held_out=len(held_out),
        n_repeated=sum(_said(example.text) in told for example in held_out),
        n_subjects=len(subjects),
    )
    if len(learned) < options.min_requests or not held_out:
        why = f"{len(learned)} different requests to learn from, {options.min_requests} are needed"
        return None, replace(found, why=why)
    if len(subjects) < options.min_subjects:
        return None, replace(found, why=f"{len(subjects)} people asked, {options.min_subjects} are needed")
    view, numbers = pipeline.search_view(audience.reach), np.flatnonzero(audience.reach)
    if view is None:
        return None, replace(found, why="there is no index")
    part = fit(
        view,
        learned,
        tools=list(place),
        tenant=audience.tenant,
        model_id=model_id,
        min_subjects=options.min_subjects,
        seed=options.seed,
        on_progress=on_progress,
    )
    if part is None:
        return None, replace(found, why="nothing was found that helps")
    with_part = pipeline.search_view(audience.reach, learned=part)
    assert with_part is not None
    before, after = _recalls(view, held_out, numbers), _recalls(with_part, held_out, numbers)
    gain = paired([after.mean(axis=1) - before.mean(axis=1)], seed=options.seed)
    better = gain is not None and gain.low > 0
    return part, replace(
        found,
        before=tuple(before.mean(axis=0).tolist()),
        after=tuple(after.mean(axis=0).tolist()),
        gain=gain,
        n_pieces=len(part.pieces),
        n_precedents=len(part.called),
        kept=better or options.force,
        why="" if better else "it is not clear that it finds more",
    )


def _split(uses: Sequence[Use], *, share: float) -> tuple[Sequence[Use], Sequence[Use]]:
    """(older, newest): by time, as the part will be used on what is asked later."""
    n_held_out = math.ceil(share * len(uses))
    return uses[: len(uses) - n_held_out], uses[len(uses) - n_held_out :]


def _said(text: str) -> str:
    return " ".join(text.casefold().split())


def _examples(uses: Sequence[Use], place: Mapping[Offered, int]) -> list[Example]:
    """One per request and what was called; made again and again it weighs 1 + ln(times)."""
    times: Counter[tuple[str, tuple[int, ...]]] = Counter()
    texts: dict[tuple[str, tuple[int, ...]], str] = {}
    people: dict[tuple[str, tuple[int, ...]], set[str]] = {}
    for use in uses:
        called = tuple(sorted({place[row] for row in use.called if row in place}))
        key = (_said(use.text), called)
        times[key] += 1
        texts.setdefault(key, use.text)
        people.setdefault(key, set()).add(use.subject)
    return [
        Example(text=texts[key], called=key[1], weight=1.0 + math.log(n), subjects=frozenset(people[key]))
        for key, n in times.items()
    ]


def _recalls(view: View, examples: Sequence[Example], numbers: IntArray) -> npt.NDArray[np.float64]:
    """Share of the called tools among the first, as a search finds them: float64, shape (n_examples, len(DEPTHS)).

    Args:
        numbers: tool number of each position.
    """
    found = np.zeros((len(examples), len(DEPTHS)))
    for row, example in enumerate(examples):
        called = set(numbers[list(example.called)].tolist())
        hits = [hit.tool_idx for hit in view.search(example.text, top_k=max(DEPTHS)).hits]
        for column, depth in enumerate(DEPTHS):
            found[row, column] = len(called.intersection(hits[:depth])) / len(called)
    return found
