"""What the records of shadow mode say: how far the candidate agrees with what was answered, and what it would cost.

Above: `cli/shadow.py`, `shadow_thresholds.py`. Below: `statistics.py`; the store's records and traces.

    ShadowRecord (both answers) ─┬─ agreement, outcomes, reach, tokens, latency
    traces (who asked; what was called afterwards) ─┴─ who gains and loses which tools; recall of called tools

Invariants
1. One candidate at a time: records of another one (other policy, options or model) are counted and left out.
2. A call counts for one select only: the newest one of the same caller, within an hour, that offered the tool; else the
   newest one. Only calls that ran and were answered count.
3. What is not known is None, with a note that says why; it is never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from toolcrib.evals.statistics import Difference, paired
from toolcrib.trace.answered import Following, Offered, answered_call, holder_of, offered_in
from toolcrib.types import ShadowRecord, ShadowSide, Stage, Trace

MAX_RECORDS = 50_000
_LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two answers to one select, and what became of it.

    Args:
        who: the caller in words, "" where the trace is gone. everything: all that was in reach was offered.
        called: tools that this caller then called, each once, in the order of their first call.
    """

    trace_id: str
    who: str
    everything: bool
    present: ShadowSide
    candidate: ShadowSide
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    n_gained: int
    n_lost: int
    called: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What there is to compare, oldest first. `n_other`: comparisons of another candidate, which were left out."""

    candidate_id: str
    pairs: tuple[Pair, ...]
    n_failed: int
    n_dropped: int
    n_other: int
    faults: Mapping[str, int]
    first_at: str
    last_at: str


def material(records: Iterable[ShadowRecord], traces: Iterable[Trace]) -> Material:
    """The comparisons of the newest candidate.

    Args:
        records, traces: newest first, of the same time.
    """
    known = list(records)
    compared = [record for record in known if record.state == "compared"]
    newest = compared[0].candidate_id if compared else ""
    asked = _asked(traces)
    mine = [record for record in reversed(compared) if record.candidate_id == newest]
    since = mine[0].at if mine else ""
    known = [record for record in known if record.at >= since]  # faults of the time before it are not this candidate's
    failed = [record for record in known if record.state == "failed"]
    return Material(
        candidate_id=newest,
        pairs=tuple(pair for record in mine for pair in _pair(record, asked)),
        n_failed=len(failed),
        n_dropped=sum(record.n_dropped for record in known),
        n_other=len(compared) - len(mine),
        faults=dict(Counter(record.fault.split("\n")[0] for record in failed).most_common(_LISTED)),
        first_at=since,
        last_at=mine[-1].at if mine else "",
    )


def _pair(record: ShadowRecord, asked: Mapping[str, _Asked]) -> Iterator[Pair]:
    if record.present is None or record.candidate is None:
        return
    of = asked.get(record.trace_id)
    yield Pair(
        trace_id=record.trace_id,
        who=of.name if of else "",
        everything=of.everything if of else False,
        present=record.present,
        candidate=record.candidate,
        gained=record.gained,
        lost=record.lost,
        n_gained=record.n_gained,
        n_lost=record.n_lost,
        called=tuple(dict.fromkeys(of.called)) if of else (),
    )


# --- who asked, and what they called


@dataclass(slots=True, kw_only=True, eq=False)
class _Asked:
    """One select in the traces, and the tools that were called for it."""

    name: str
    everything: bool
    offered: frozenset[Offered]
    called: list[str]


def _asked(traces: Iterable[Trace]) -> dict[str, _Asked]:
    """The selects of the traces by id, with the calls that followed them."""
    events = [(trace.trace_id, holder_of(trace), trace.at, _light(trace)) for trace in traces]
    found: dict[str, _Asked] = {}
    following: Following[_Asked] = Following()
    for trace_id, holder, at, event in reversed(events):
        if isinstance(event, _Asked):
            found[trace_id] = event
            following.asked(holder, at=at, offered=event.offered, request=event)
        elif event is not None:
            chosen = following.called(holder, at=at, tool=event) or following.newest(holder, at=at)
            if chosen is not None:
                chosen.called.append(event[0])
    return found


def _light(trace: Trace) -> _Asked | Offered | None:
    """What is needed of a trace: whole ones would not fit into memory together."""
    if trace.kind == "call":
        return answered_call(trace)
    views = {record.stage: record.operator_view for record in trace.records}
    behind = f" for {trace.on_behalf_of}" if trace.on_behalf_of else ""
    return _Asked(
        name=trace.subject + behind + (f" ({trace.tenant})" if trace.tenant else ""),
        everything=views.get(Stage.RETRIEVAL, {}).get("present") == "all",
        offered=offered_in(views.get(Stage.SELECTION, {})),
        called=[],
    )


# --- figures


def figures(found: Material, *, k: int, seed: int = 0) -> dict[str, Any]:
    """All figures, as `toolcrib shadow report --json` prints them. Shares are 0 to 1; differences are candidate minus
    present, with a 95 % interval over pairs.

    Args:
        k: tools of either offer that the overlap looks at.
    """
    pairs = found.pairs
    labelled = [pair for pair in pairs if pair.called]
    ranked = [pair for pair in pairs if not pair.everything]
    notes: list[str] = []
    if not pairs:
        notes.append("nothing was compared in this time, so nothing is known")
    elif len(ranked) < len(pairs):
        notes.append("where everything in reach was offered, nothing was ranked: no first tool, no overlap")
    if pairs and not labelled:
        notes.append("no call followed a compared select, so no recall is known")
    elif labelled:
        notes.append(
            "calls follow what was offered, which favours the present: recall of the candidate is a lower bound"
        )
    return {
        "candidate_id": found.candidate_id,
        "first_at": found.first_at,
        "last_at": found.last_at,
        "n_compared": len(pairs),
        "n_labelled": len(labelled),
        "n_failed": found.n_failed,
        "n_dropped": found.n_dropped,
        "n_other_candidates": found.n_other,
        "failed": _share(found.n_failed, found.n_failed + len(pairs)),
        "dropped": _share(found.n_dropped, found.n_dropped + found.n_failed + len(pairs)),
        "faults": dict(found.faults),
        "agreement": _agreement(ranked, k=k),
        "outcomes": _outcomes(pairs),
        "reach": _reach(pairs),
        "tokens": _tokens(pairs, seed=seed),
        "latency_ms": _latency(pairs),
        "calls": _calls(labelled, seed=seed),
        "disagreements": _disagreements(pairs),
        "notes": notes,
    }


def _agreement(pairs: Sequence[Pair], *, k: int) -> dict[str, Any]:
    """`first`: the same first tool, or none in both. `overlap`: |A ∩ B| / |A ∪ B| of the first k, 1 for two empty."""
    overlaps = [_overlap(pair.present.tool_ids[:k], pair.candidate.tool_ids[:k]) for pair in pairs]
    return {
        "k": k,
        "first": _mean([float(p.present.tool_ids[:1] == p.candidate.tool_ids[:1]) for p in pairs]),
        "same_tools": _mean([float(set(p.present.tool_ids) == set(p.candidate.tool_ids)) for p in pairs]),
        "overlap": _mean(overlaps),
    }


def _overlap(one: Sequence[str], other: Sequence[str]) -> float:
    union = set(one) | set(other)
    return len(set(one) & set(other)) / len(union) if union else 1.0


def _outcomes(pairs: Sequence[Pair]) -> dict[str, Any]:
    counts = Counter((pair.present.outcome, pair.candidate.outcome) for pair in pairs)
    changed = sum(n for (then, now), n in counts.items() if then != now)
    return {
        "changed": _share(changed, len(pairs)),
        "pairs": [{"present": then, "candidate": now, "n": n} for (then, now), n in counts.most_common()],
    }


def _reach(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Which tools policy and routing of the candidate give and take, and to whom."""
    gained, lost = _by_tool(pairs, "gained"), _by_tool(pairs, "lost")
    return {
        "n_gained_tools": len(gained),
        "n_lost_tools": len(lost),
        "is_cut": any(p.n_gained > len(p.gained) or p.n_lost > len(p.lost) for p in pairs),
        "gained": _listed(gained),
        "lost": _listed(lost),
    }


def _by_tool(pairs: Sequence[Pair], side: str) -> dict[str, Counter[str]]:
    """Tool id -> caller -> selects."""
    found: dict[str, Counter[str]] = {}
    for pair in pairs:
        for tool_id in getattr(pair, side):
            found.setdefault(tool_id, Counter())[pair.who or "(trace gone)"] += 1
    return found


def _listed(by_tool: Mapping[str, Counter[str]]) -> list[dict[str, Any]]:
    ordered = sorted(by_tool.items(), key=lambda item: (-item[1].total(), item[0]))
    return [
        {
            "tool_id": tool_id,
            "n_selects": callers.total(),
            "n_callers": len(callers),
            "callers": [name for name, _n in callers.most_common(_LISTED)],
        }
        for tool_id, callers in ordered[: 5 * _LISTED]
    ]


def _tokens(pairs: Sequence[Pair], *, seed: int) -> dict[str, Any]:
    present, candidate = (_array(getattr(pair, side).tokens for pair in pairs) for side in ("present", "candidate"))
    return {
        "present_mean": _mean(present),
        "candidate_mean": _mean(candidate),
        "ratio": _ratio(float(candidate.sum()), float(present.sum())),
        "difference": _told(paired([candidate - present], seed=seed)),
    }


def _latency(pairs: Sequence[Pair]) -> dict[str, Any]:
    present, candidate = (_array(getattr(pair, side).latency_ms for pair in pairs) for side in ("present", "candidate"))
    then, now = _percentiles(present), _percentiles(candidate)
    ratio = _ratio(now["p95"], then["p95"]) if then["p95"] is not None and now["p95"] is not None else None
    return {"present": then, "candidate": now, "ratio": ratio}


def _calls(pairs: Sequence[Pair], *, seed: int) -> dict[str, Any]:
    """Recall of called tools in either offer; selects whose called tool only one of them holds."""
    present, candidate = (
        _array(_recall(pair, getattr(pair, side)) for pair in pairs) for side in ("present", "candidate")
    )
    lost = Counter(t for p in pairs for t in p.called if t in p.present.tool_ids and t not in p.candidate.tool_ids)
    n_lost = sum(any(t in p.present.tool_ids and t not in p.candidate.tool_ids for t in p.called) for p in pairs)
    n_won = sum(any(t not in p.present.tool_ids and t in p.candidate.tool_ids for t in p.called) for p in pairs)
    return {
        "recall_present": _mean(present),
        "recall_candidate": _mean(candidate),
        "difference": _told(paired([candidate - present], seed=seed)),
        "lost": _share(n_lost, len(pairs)),
        "won": _share(n_won, len(pairs)),
        "lost_tools": [{"tool_id": tool_id, "n": n} for tool_id, n in lost.most_common(_LISTED)],
    }


def _recall(pair: Pair, side: ShadowSide) -> float:
    return sum(tool_id in side.tool_ids for tool_id in pair.called) / len(pair.called)


def _disagreements(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """The newest selects that would have had another first tool or outcome, those with a lost call first."""

    def lost(pair: Pair) -> list[str]:
        return [t for t in pair.called if t in pair.present.tool_ids and t not in pair.candidate.tool_ids]

    other = [
        pair
        for pair in reversed(pairs)
        if lost(pair)
        or pair.present.outcome != pair.candidate.outcome
        or (not pair.everything and pair.present.tool_ids[:1] != pair.candidate.tool_ids[:1])
    ]
    other.sort(key=lambda pair: not lost(pair))
    return [
        {
            "trace_id": pair.trace_id,
            "present": pair.present.tool_ids[0] if pair.present.tool_ids else pair.present.outcome,
            "candidate": pair.candidate.tool_ids[0] if pair.candidate.tool_ids else pair.candidate.outcome,
            "called": list(pair.called),
            "lost_calls": lost(pair),
        }
        for pair in other[:_LISTED]
    ]


# --- arithmetic


def _array(values: Iterable[float]) -> npt.NDArray[np.float64]:
    return np.array(list(values), dtype=np.float64)


def _mean(values: Sequence[float] | npt.NDArray[np.float64]) -> float | None:
    return round(float(np.mean(values)), 6) if len(values) else None


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


def _ratio(now: float, then: float) -> float | None:
    return round(now / then, 6) if then > 0 else None


def _percentiles(values: npt.NDArray[np.float64]) -> dict[str, float | None]:
    if not len(values):
        return {"p50": None, "p95": None}
    p50, p95 = np.percentile(values, (50, 95))
    return {"p50": round(float(p50), 3), "p95": round(float(p95), 3)}


def _told(difference: Difference | None) -> dict[str, Any] | None:
    if difference is None:
        return None
    rounded = {key: round(value, 6) if isinstance(value, float) else value for key, value in asdict(difference).items()}
    return {**rounded, "clear": difference.is_clear}
