"""Places: where cases are asked. A pipeline, and for each case the caller that asks.

    a folder of its own ─▶ place_of_folder ─┐
                                            ├─▶ Place: pipeline, cases with their callers ─▶ run.py
    a crib and a case file ─▶ place_of_crib ─┘

Below: `cases.py`, `folders.py`, `crib.py`. Nothing that is asked here leaves a trace or reaches a server.

Invariants
1. A case is asked of the pipeline that serves, as the caller it names; a caller that nobody knows is an error, never
   somebody with more rights.
2. In a folder's place everything is permitted and approved: what is measured there is search and selection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from toolcrib.assembly import catalog_summary
from toolcrib.catalog.digest import digest_of
from toolcrib.crib import Crib
from toolcrib.errors import ConfigError
from toolcrib.evals.cases import Case
from toolcrib.evals.folders import Folder
from toolcrib.gate.arguments import ArgumentChecker
from toolcrib.identity.callers import caller_from_file, caller_from_mapping
from toolcrib.models import embedder_for
from toolcrib.pipeline import Pipeline, PipelineOptions
from toolcrib.policy.engine import PolicyEngine
from toolcrib.retrieval.confidence import DEFAULT_FLOOR
from toolcrib.retrieval.dense import bundled_embedder
from toolcrib.retrieval.index import Index
from toolcrib.routing.facts import routing_facts
from toolcrib.selection.tokens import estimate_tokens
from toolcrib.settings import Settings
from toolcrib.settings.model import RetrievalSettings, SelectionSettings
from toolcrib.types import BoolArray, Caller, CatalogSnapshot, Channel, JsonObject, Tool

PERMIT_ALL = "permit (principal, action, resource);"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A case, and the caller that it is asked as."""

    case: Case
    caller: Caller


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """One set of cases and what they are asked of.

    Args:
        name: the set's, unique in a run.
        limit, token_budget: of each request, as a client would leave them.
        summary: of the catalog, as a trace's explanation needs it.
        own_world: a folder's: no policy, no crib.
    """

    name: str
    pipeline: Pipeline
    asked: tuple[Asked, ...]
    channel: Channel = Channel.LIBRARY
    limit: int
    token_budget: int
    summary: Mapping[str, object]
    own_world: bool
    notes: tuple[str, ...] = ()
    _costs: dict[str, int] = field(default_factory=dict, repr=False)

    @property
    def corpus(self) -> str:
        """The catalog's version: places of one corpus can be compared with each other."""
        return self.pipeline.snapshot.version

    def cost_of(self, tool_id: str) -> int:
        """Tokens of the definition of a tool in service, worked out once."""
        if tool_id not in self._costs:
            tool = self.pipeline.tool(tool_id)
            self._costs[tool_id] = self.pipeline.cost(tool.definition) if tool else 0
        return self._costs[tool_id]

    def numbers(self, tool_ids: Sequence[str] | frozenset[str]) -> list[int]:
        """The numbers of those of these tools that are in service, ascending."""
        found = (self.pipeline.classes.number_of(tool_id) for tool_id in tool_ids)
        return sorted(number for number in found if number is not None)

    def mask(self, tool_ids: frozenset[str]) -> BoolArray:
        """bool, shape (n_tools,): these tools."""
        bits = np.zeros(len(self.pipeline.snapshot.tools), dtype=np.bool_)
        bits[self.numbers(tool_ids)] = True
        return bits


def place_of_folder(folder: Folder, *, settings: Settings | None = None) -> Place:
    """A set's own world: all its tools approved, everything permitted, the defaults of selection.

    Args:
        settings: whose `[retrieval]` to search with; the defaults without.
    Raises:
        ConfigError: the embedder that the settings ask for cannot be made.
    """
    snapshot = CatalogSnapshot(version=_version(folder.tools), tools=folder.tools)
    embedder = bundled_embedder() if settings is None else embedder_for(settings)
    retrieval = RetrievalSettings() if settings is None else settings.retrieval
    pipeline = own_pipeline(snapshot, index=Index.build(folder.tools, embedder=embedder), retrieval=retrieval)
    caller = Caller(subject="eval")
    defaults = SelectionSettings()
    return Place(
        name=folder.name,
        pipeline=pipeline,
        asked=tuple(Asked(case=case, caller=caller) for case in folder.cases),
        limit=defaults.limit,
        token_budget=defaults.token_budget,
        summary=catalog_summary(snapshot),
        own_world=True,
        notes=folder.notes,
    )


def own_pipeline(snapshot: CatalogSnapshot, *, index: Index | None, retrieval: RetrievalSettings) -> Pipeline:
    """A pipeline over these tools that permits everything."""
    policy = PolicyEngine.from_text(PERMIT_ALL, source="eval")
    floor = retrieval.confidence_floor
    return Pipeline(
        snapshot=snapshot,
        policy=policy,
        classes=policy.classes(snapshot.tools),
        facts=routing_facts(snapshot.tools),
        index=index,
        options=PipelineOptions(
            confidence_floor=DEFAULT_FLOOR if floor is None else floor,
            top_k=retrieval.top_k,
            unknown_risk=dict.fromkeys(Channel, "allow"),
            adapt=retrieval.adapt,
            rerank=retrieval.rerank,
        ),
        cost=estimate_tokens,
        checker=ArgumentChecker(),
    )


def _version(tools: Sequence[Tool]) -> str:
    return digest_of([(tool.tool_id, tool.digest) for tool in tools])


def place_of_crib(crib: Crib, cases: Sequence[Case], *, name: str) -> Place:
    """The crib's own pipeline, with the callers that the cases name.

    Raises:
        ConfigError: a case names a caller that is not there. ToolcribError: nothing valid is in force.
    """
    pipeline = crib.pipeline()
    callers = _Callers(crib)
    return Place(
        name=name,
        pipeline=pipeline,
        asked=tuple(Asked(case=case, caller=callers.of(case)) for case in cases),
        limit=crib.settings.selection.limit,
        token_budget=crib.settings.selection.token_budget,
        summary=catalog_summary(pipeline.snapshot),
        own_world=False,
        notes=tuple(_odd(cases, known={tool.tool_id for tool in pipeline.snapshot.tools})),
    )


def _odd(cases: Sequence[Case], *, known: set[str]) -> Iterator[str]:
    """What may be a slip: ids that no tool in service has, and drafts that nobody has corrected."""
    for case in cases:
        named = {"expect": frozenset().union(*case.expect or ()), "forbid": frozenset(case.forbid)}
        for key, tool_ids in named.items():
            for tool_id in sorted(tool_ids - known):
                near = get_close_matches(tool_id, known, n=1)
                meant = f"; did you mean {near[0]}?" if near else ""
                yield f"case {case.case_id}: `{key}` names {tool_id}, which is not in service{meant}"
    if n_drafts := sum("draft" in case.tags for case in cases):
        yield f"{n_drafts} of {len(cases)} cases are drafts: they use the definitions' own words, and find them easily"


class _Callers:
    """The callers that cases can name: the crib's profiles, and the local operator for none."""

    def __init__(self, crib: Crib) -> None:
        self._crib = crib
        self._known: dict[str, Caller] = {}

    def of(self, case: Case) -> Caller:
        if case.caller is None:
            return self._crib.local_caller
        if isinstance(case.caller, str):
            return self._profile(case.caller, where=case.where)
        return caller_of_fields(case.caller, settings=self._crib.settings, where=f"{case.where}: caller")

    def _profile(self, name: str, *, where: str) -> Caller:
        if name not in self._known:
            settings = self._crib.settings
            files = {path.stem: path for path in sorted(settings.profiles.glob("*.json"))}
            if name not in files:
                raise ConfigError(
                    f'there is no profile "{name}"', where=where, hint=_profile_hint(name, files, settings)
                )
            self._known[name] = caller_from_file(
                files[name], environment=settings.crib.environment, region=settings.crib.region
            )
        return self._known[name]


def _profile_hint(name: str, files: Mapping[str, Path], settings: Settings) -> str:
    close = get_close_matches(name, files, n=1)
    if close:
        return f'did you mean "{close[0]}"?'
    known = f"there are: {', '.join(files)}" if files else f"put a caller file into {settings.profiles}"
    return f"{known}; or write the caller's fields into the case"


def caller_of_fields(fields: JsonObject, *, settings: Settings, where: str) -> Caller:
    """The caller that these fields describe, and whom it acts for; where it is, the crib is.

    Raises:
        ConfigError: an unknown field or a wrong value.
    """
    own = {key: value for key, value in fields.items() if key != "acting_for"}
    crib = settings.crib
    caller = caller_from_mapping(own, environment=crib.environment, region=crib.region, where=where)
    behind = fields.get("acting_for")
    return (
        caller
        if behind is None
        else replace(caller, acting_for=caller_of_fields(behind, settings=settings, where=where))
    )
