"""Looking back at a trace: why a caller did not get a tool, and the same select once more (I6, I11).

Floor 4. Above: `crib.py`. Below: `trace/explain.py`, `pipeline.py`, `recorded.py`. The operator's view only; writes
nothing.

Everything that an answer depends on is in its trace: request, caller, channel, catalog, policy, index, options, the
health of tools. A replay takes them as they were, and the versions either as they were (`recorded`) or as they are
(`present`). What is not kept any more is named, not guessed at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from toolcrib.assembly import Assembly
from toolcrib.errors import ToolcribError, TraceError
from toolcrib.everything import select_everything
from toolcrib.identity.callers import caller_from_record
from toolcrib.pipeline import Pipeline, Selected
from toolcrib.recorded import options_again, policy_again, snapshot_again
from toolcrib.retrieval.learning import NOTHING
from toolcrib.settings import Settings
from toolcrib.store.protocol import Store
from toolcrib.trace.answered import holder_of
from toolcrib.trace.explain import Explanation, explain
from toolcrib.types import SelectRequest, Stage, ToolHealth, Trace

_MAX_LATER = 500
"""Traces that are searched for what became of an offered tool."""
_MAX_PAST = 4
"""Old pipelines that are remembered: neighbouring traces rest on the same versions."""

_ROAD = (Stage.REGISTRY, Stage.ELIGIBILITY, Stage.ROUTING, Stage.RETRIEVAL, Stage.SELECTION)
"""Stages as a difference comes about: hard constraints stand before the search."""

Against = Literal["recorded", "present"]
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChange:
    """One tool that is offered otherwise.

    Args:
        change: `gained`, `lost`, `moved` (among the tools of both offers), or `redefined` (another digest under the
            same id).
        then, now: its rank, 0 where it was not offered.
        stage: where the difference came about. why: what that stage says of the tool, for the operator.
    """

    tool_id: str
    change: Literal["gained", "lost", "moved", "redefined"]
    then: int
    now: int
    stage: Stage
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What came of it.

    Args:
        same: `recorded`: the selection is the same in every field; `present`: the same tools in the same order, the
            same outcome, the same tokens.
        differs: the fields of the selection that came out otherwise; or, where `compared` is false, the versions that
            the answer rested on and that cannot be made again.
        others: the versions that are others by now, whether or not the answer is.
        stage: the first stage that made a difference to the offer; None without one.
    """

    trace_id: str
    same: bool
    differs: tuple[str, ...]
    against: Against = "recorded"
    compared: bool = True
    others: tuple[str, ...] = ()
    stage: Stage | None = None
    changes: tuple[ToolChange, ...] = ()
    outcome: tuple[str, str] = ("", "")
    tokens: tuple[int, int] = (0, 0)


class Replays:
    """Replays of traces of one crib. Keeps the last few old pipelines that it made.

    Args:
        in_force: what is in force now; raises ToolcribError when nothing valid is.
    """

    def __init__(self, store: Store, *, assembly: Assembly, settings: Settings, in_force: Pipeline) -> None:
        self._store = store
        self._assembly = assembly
        self._settings = settings
        self._in_force = in_force
        self._past: dict[tuple[str, ...], Pipeline | tuple[str, ...]] = {}
        self._catalogs: dict[str, dict[str, Any] | None] = {}

    def replay(self, trace: Trace, *, against: Against = "recorded") -> Replayed:
        """The select of this trace once more.

        Raises:
            TraceError: the trace is of no select, or of one that could not be answered.
        """
        views = _views(trace)
        others = _others(views, self._in_force)
        pipeline: Pipeline | tuple[str, ...] = self._in_force
        if against == "recorded" and others:
            pipeline = self._as_it_was(views)
        if isinstance(pipeline, tuple):
            return Replayed(trace_id=trace.trace_id, same=False, differs=pipeline, compared=False, others=others)
        done = _again(trace, views, pipeline)
        return self._compared(trace, views, done, pipeline, against=against, others=others)

    def _as_it_was(self, views: _Views) -> Pipeline | tuple[str, ...]:
        """The pipeline that the trace rested on, or the names of what is gone of it."""
        key = tuple(_versions(views).values())
        if key not in self._past:
            if len(self._past) >= _MAX_PAST:
                del self._past[next(iter(self._past))]
            self._past[key] = self._made_again(_versions(views))
        return self._past[key]

    def _made_again(self, versions: Mapping[str, str]) -> Pipeline | tuple[str, ...]:
        now = self._in_force
        is_now = versions["catalog"] == now.snapshot.version
        snapshot = now.snapshot if is_now else snapshot_again(self._store, versions["catalog"])
        is_now = versions["policy"] == now.policy.version
        policy = now.policy if is_now else policy_again(self._store, versions["policy"])
        options = options_again(self._store, versions["options"], like=now.options)
        # An older learned file is not kept; that there was none can be had again.
        learned = {now.learned.digest: now.learned, NOTHING.digest: NOTHING}.get(versions["learned"])
        parts = {"catalog": snapshot, "policy": policy, "options": options, "learned": learned}
        gone = tuple(name for name, part in parts.items() if part is None)
        if snapshot is None or policy is None or options is None or learned is None:
            return gone
        made = self._assembly.past_pipeline(
            self._settings, snapshot=snapshot, policy=policy, options=options, learned=learned
        )
        still = _others_of(versions, made)
        return still or made

    def _compared(
        self,
        trace: Trace,
        views: _Views,
        done: Selected,
        pipeline: Pipeline,
        *,
        against: Against,
        others: tuple[str, ...],
    ) -> Replayed:
        given = views[Stage.SELECTION]
        again = next(r.operator_view for r in done.records if r.stage is Stage.SELECTION)
        differs = tuple(key for key in again if _plain(again[key]) != _plain(given.get(key)))
        changes = tuple(self._changes(trace, given, done, pipeline)) if "tools" in differs else ()
        same = not differs if against == "recorded" else not _offered_otherwise(given, _plain(again))
        stages = {change.stage for change in changes}
        if not stages and "outcome" in differs:
            stages = {Stage.SELECTION}
        return Replayed(
            trace_id=trace.trace_id,
            same=same,
            differs=differs,
            against=against,
            others=others,
            stage=next((stage for stage in _ROAD if stage in stages), None),
            changes=changes,
            outcome=(str(given["outcome"]), str(again["outcome"])),
            tokens=(int(given["tokens"]), int(again["tokens"])),
        )

    def _catalog(self, version: str) -> dict[str, Any] | None:
        if version not in self._catalogs:
            self._catalogs[version] = self._store.catalog(version)
        return self._catalogs[version]

    def _changes(
        self, trace: Trace, given: Mapping[str, Any], done: Selected, pipeline: Pipeline
    ) -> Iterator[ToolChange]:
        """Tool by tool, those offered now first, in their order."""
        then = {tool["tool_id"]: (int(tool["rank"]), str(tool["digest"])) for tool in given["tools"]}
        now = {s.tool.tool_id: (s.rank, s.tool.digest) for s in done.selection.tools}
        old_version = str(_views(trace)[Stage.REGISTRY].get("catalog_version", ""))
        old_catalog = self._catalog(old_version)
        new_catalog = self._catalog(pipeline.snapshot.version)
        new_trace = replace(trace, records=done.records)
        moved = _moved([tool_id for tool_id in then if tool_id in now], [tool_id for tool_id in now if tool_id in then])
        for tool_id, (rank, digest) in now.items():
            if tool_id not in then:
                stage, why = _lost_at(trace, tool_id, old_catalog)
                yield ToolChange(tool_id=tool_id, change="gained", then=0, now=rank, stage=stage, why=f"then: {why}")
            elif (is_new := then[tool_id][1] != digest) or tool_id in moved:
                yield ToolChange(
                    tool_id=tool_id,
                    change="redefined" if is_new else "moved",
                    then=then[tool_id][0],
                    now=rank,
                    stage=Stage.REGISTRY if is_new else Stage.RETRIEVAL,
                    why="another definition by now" if is_new else "ranked otherwise",
                )
        for tool_id, (rank, _digest) in then.items():
            if tool_id not in now:
                stage, why = _lost_at(new_trace, tool_id, new_catalog)
                yield ToolChange(tool_id=tool_id, change="lost", then=rank, now=0, stage=stage, why=f"now: {why}")


_Views = Mapping[Stage, Mapping[str, Any]]


def is_answered_select(trace: Trace) -> bool:
    """Whether there is something to replay."""
    stages = {record.stage for record in trace.records}
    return trace.kind == "select" and stages >= set(_ROAD)


def _views(trace: Trace) -> _Views:
    if not is_answered_select(trace):
        raise TraceError(f"trace {trace.trace_id!r} holds no answered select", hint="see `toolcrib trace list`")
    return {record.stage: record.operator_view for record in trace.records}


def _again(trace: Trace, views: _Views, pipeline: Pipeline) -> Selected:
    """The request of this trace, answered by this pipeline, with the health of tools as it was."""
    asked, given = views[Stage.RETRIEVAL], views[Stage.SELECTION]
    caller = caller_from_record(views[Stage.ELIGIBILITY]["caller"], where=f"trace {trace.trace_id}")
    if asked.get("present") == "all":
        return select_everything(
            pipeline,
            task=asked["task"],
            queries=tuple(asked["queries"]),
            **asked["given"],
            caller=caller,
            channel=trace.channel,
        )
    known = {tool_id: ToolHealth(**one) for tool_id, one in views[Stage.ROUTING]["health"].items()}
    return pipeline.select(
        SelectRequest(
            task=asked["task"],
            queries=tuple(asked["queries"]),
            limit=given["limit"],
            token_budget=given["token_budget"],
        ),
        caller=caller,
        channel=trace.channel,
        health=lambda tools: {tool.tool_id: known[tool.tool_id] for tool in tools if tool.tool_id in known},
    )


def _moved(then: Sequence[str], now: Sequence[str]) -> set[str]:
    """Of the tools in both offers, those whose place among these is another: not those that only moved up a gap."""
    return {tool_id for place, tool_id in enumerate(now) if then[place] != tool_id}


def _lost_at(trace: Trace, tool_id: str, catalog: Mapping[str, Any] | None) -> tuple[Stage, str]:
    """Which stage kept this tool out of that select. A place behind the limit is the ranking's doing."""
    found = explain(trace, tool_id=tool_id, catalog=catalog)
    if found.lost_at is None or found.code == "limit":
        return Stage.RETRIEVAL, found.reason
    return found.lost_at, found.reason


def _offered_otherwise(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a caller's model would be given something else. Scores are not something it acts on."""

    def offer(view: Mapping[str, Any]) -> list[Any]:
        return [view["outcome"], view["tokens"], [(tool["tool_id"], tool["digest"]) for tool in view["tools"]]]

    return offer(then) != offer(now)


# --- many of them


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedMany:
    """Replays of the selects of some time.

    Args:
        n_same, n_different: compared ones. n_not_kept: rested on what cannot be made again.
        n_unanswered: selects that nothing could answer then, and what is damaged; nothing to replay.
        gained, lost: tool id -> selects. outcomes: (then, now) -> selects. stages: where differences began -> selects.
        tokens: sums then and now, over compared ones.
    """

    against: Against
    n_same: int
    n_different: int
    n_not_kept: int
    n_unanswered: int
    gained: Mapping[str, int]
    lost: Mapping[str, int]
    outcomes: Mapping[tuple[str, str], int]
    stages: Mapping[str, int]
    not_kept: Mapping[str, int]
    tokens: tuple[int, int]
    different: tuple[Replayed, ...]


def summed(replayed: Sequence[Replayed], *, against: Against, n_unanswered: int) -> ReplayedMany:
    """All of them together; `different` keeps those that differ, in their order."""
    compared = [one for one in replayed if one.compared]
    not_kept = [one for one in replayed if not one.compared]
    different = tuple(one for one in compared if not one.same)
    return ReplayedMany(
        against=against,
        n_same=len(compared) - len(different),
        n_different=len(different),
        n_not_kept=len(not_kept),
        n_unanswered=n_unanswered,
        gained=_counted(change.tool_id for one in different for change in one.changes if change.change == "gained"),
        lost=_counted(change.tool_id for one in different for change in one.changes if change.change == "lost"),
        outcomes=_counted(one.outcome for one in compared if one.outcome[0] != one.outcome[1]),
        stages=_counted(one.stage.value for one in different if one.stage),
        not_kept=_counted(name for one in not_kept for name in one.differs),
        tokens=(sum(one.tokens[0] for one in compared), sum(one.tokens[1] for one in compared)),
        different=different,
    )


def _counted(values: Iterable[_Key]) -> dict[_Key, int]:
    """How often each stands there, most often first; ties as they came."""
    counts: dict[_Key, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


# --- why not this tool


def explained(trace: Trace, *, tool_id: str, store: Store, pipeline: Callable[[], Pipeline]) -> Explanation:
    """Why the caller of that trace did or did not get this tool, with the policies behind it where they are the same.

    Args:
        tool_id: what it is called, or was: the operator's `aliases` tell.
        pipeline: gives the one in force; raises ToolcribError when there is none.
    """
    registry = trace.record(Stage.REGISTRY)
    version = registry.operator_view.get("catalog_version", "") if registry else ""
    later = [t for t in store.traces(limit=_MAX_LATER) if t.kind == "call" and t.at >= trace.at]
    mine = [t for t in reversed(later) if holder_of(t) == holder_of(trace)]
    catalog = store.catalog(version)
    tool_id = _called_then(tool_id, catalog, pipeline)
    found = explain(trace, tool_id=tool_id, catalog=catalog, later_calls=mine)
    if found.lost_at is not Stage.ELIGIBILITY:
        return found
    rules = _rules_against(trace, tool_id, version, pipeline)
    return replace(found, reason=f"{found.reason} ({', '.join(rules)})") if rules else found


def _called_then(tool_id: str, catalog: Mapping[str, Any] | None, in_force: Callable[[], Pipeline]) -> str:
    """What a tool was called in that catalog, asked for by any name that it has or had; else what was asked for."""
    listed = {row[0] for part in ("tools", "withheld") for row in (catalog or {}).get(part, ())}
    if tool_id in listed:
        return tool_id
    try:
        tools = in_force().snapshot.tools
    except ToolcribError:
        return tool_id
    names = ((tool.tool_id, *tool.metadata.aliases) for tool in tools)
    return next((name for known in names if tool_id in known for name in known if name in listed), tool_id)


def _rules_against(
    trace: Trace, tool_id: str, catalog_version: str, in_force: Callable[[], Pipeline]
) -> tuple[str, ...]:
    """Which policies denied this tool to the trace's caller, as far as catalog and policy are still the same."""
    record = trace.record(Stage.ELIGIBILITY)
    try:
        pipeline = in_force()
    except ToolcribError:
        return ()
    view = record.operator_view if record else {}
    tool = pipeline.tool(tool_id)
    same = (pipeline.snapshot.version, pipeline.policy.version) == (catalog_version, view.get("policy_version"))
    if tool is None or not same:
        return ()
    caller = caller_from_record(view["caller"], where="(the trace's caller)")
    decision = pipeline.decision(tool, caller=caller, channel=trace.channel)
    return decision.policies or ("no rule permits it",)


# --- versions


def _versions(views: _Views) -> dict[str, str]:
    """What the answer rested on."""
    retrieval = views[Stage.RETRIEVAL]
    return {
        "catalog": str(views[Stage.REGISTRY].get("catalog_version")),
        "policy": str(views[Stage.ELIGIBILITY].get("policy_version")),
        "index": str(retrieval.get("index_version")),
        "options": str(retrieval.get("options")),
        "learned": str(retrieval.get("learned", "")),
    }


def _others(views: _Views, pipeline: Pipeline) -> tuple[str, ...]:
    """What of it is another by now."""
    return _others_of(_versions(views), pipeline)


def _others_of(versions: Mapping[str, str], pipeline: Pipeline) -> tuple[str, ...]:
    now = {
        "catalog": pipeline.snapshot.version,
        "policy": pipeline.policy.version,
        "index": _index_of(pipeline),
        "options": pipeline.options.digest,
        "learned": pipeline.learned.digest,
    }
    return tuple(name for name, then in versions.items() if then != now[name])


def _index_of(pipeline: Pipeline) -> str:
    return pipeline.index.key if pipeline.index else ""


def _plain(value: Any) -> Any:
    """As it comes out of the store."""
    return json.loads(json.dumps(value))
