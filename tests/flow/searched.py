"""A catalog to search over the whole road: what anybody may use, what policy only discloses, what nobody here may know
of; and all that a caller sees of it, as text that is equal only where every bit is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from tests.flow.worlds import caller
from tests.retrieval.making import everyone, tool
from toolcrib.catalog.digest import digest_of
from toolcrib.gate.arguments import ArgumentChecker
from toolcrib.pipeline import Pipeline, PipelineOptions
from toolcrib.policy.engine import PolicyEngine
from toolcrib.retrieval.calibration import Calibration
from toolcrib.retrieval.confidence import DEFAULT_FLOOR
from toolcrib.retrieval.dense import bundled_embedder
from toolcrib.retrieval.index import Index
from toolcrib.retrieval.learning import NOTHING, Learned
from toolcrib.retrieval.tuning import Example, fit
from toolcrib.routing.facts import routing_facts
from toolcrib.selection.tokens import estimate_tokens
from toolcrib.types import CatalogSnapshot, Channel, Risk, RiskSource, SelectRequest, Tool

POLICY = """
permit (principal, action, resource) when { principal.scopes.containsAll(resource.required_scopes) };
forbid (principal, action == Action::"call", resource in Namespace::"archive");
"""
SERVERS = {
    "shop": ("order", "refund", "parcel", "invoice"),
    "desk": ("ticket", "customer", "meeting"),
    "cloud": ("bucket", "vault"),
}
VERBS = {"get": "Look up one", "list": "List every", "cancel": "Cancel a"}
VENDOR = "Part of the Contoso platform; needs a subscription and a tenant."
ANN = caller(subject="ann", tenant="acme")


def a_tool(tool_id: str, description: str, *, scopes: tuple[str, ...] = (), namespace: str = "") -> Tool:
    """A tool whose operator said all that policy asks."""
    noun = tool_id.rpartition("_")[2]
    schema = {"type": "object", "properties": {f"{noun}_id": {"type": "string", "description": f"Which {noun}."}}}
    return tool(
        tool_id,
        description,
        schema=schema,
        namespace=namespace or tool_id.partition(".")[0],
        required_scopes=scopes,
        risk=Risk.READ,
        risk_source=RiskSource.OPERATOR,
    )


OPEN = tuple(
    a_tool(f"{server}.{verb}_{noun}", f"{says} {noun}. {VENDOR}")
    for server, nouns in SERVERS.items()
    for noun in nouns
    for verb, says in VERBS.items()
)
DISCLOSED = (
    a_tool("attic.shred_parchment", "Shred medieval parchment.", namespace="archive"),
    a_tool("attic.bind_folio", "Bind loose folio pages into a book.", namespace="archive"),
)
KNOWN = OPEN + DISCLOSED
N_LARGE = 4_200
"""More than what is scored in full at once: these are looked at twice."""


@lru_cache(maxsize=1)
def large() -> tuple[Tool, ...]:
    """The same and some thousand more that anybody may use."""
    things = ("lamp", "chair", "river", "engine", "garden", "ledger", "camera", "ticket", "bridge", "recipe")
    says = ("Measure the", "Paint the", "Rent out the", "Describe the", "Repair the", "Sell the", "Archive the")
    more = (
        a_tool(f"s{n % 40}.do_{n}_{things[n % 10]}", f"{says[n % 7]} {things[n % 10]} of house {n}.")
        for n in range(N_LARGE)
    )
    return (*KNOWN, *more)


@lru_cache(maxsize=1)
def large_index() -> Index:
    """Of the large catalog, built once for all tests."""
    return Index.build(in_order(large()), embedder=bundled_embedder())


def secret(tool_id: str, description: str) -> Tool:
    """A tool that Ann may not know of."""
    return a_tool(tool_id, description, scopes=("other",))


REQUESTS = (
    SelectRequest(task="look up the order of a customer"),
    SelectRequest(task="list every invoice, then cancel the meeting and tell the customer about the refund", limit=8),
    SelectRequest(
        task="orders, parcels", queries=("where is my parcel", "cancel an order", "contoso buckets"), limit=6
    ),
    SelectRequest(task='shop.get_order and "list_ticket"', limit=3, token_budget=220),
    SelectRequest(task="vault.open_safe"),
    SelectRequest(task="shred the medieval parchment"),
    SelectRequest(task="paint the garden and repair the bridge of house 77", limit=10),
    SelectRequest(task="who won the chess olympiad in 1972"),
    SelectRequest(task="取消订单"),
    SelectRequest(task="?!"),
)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What an operator may switch."""

    adapt: bool = True
    rerank: bool = True
    calibration: Calibration | None = None
    learned: Learned = NOTHING


CALIBRATION = Calibration(
    basis="any", slope=1.4, offset=-0.3, floor=0.2, false_refusal=0.02, n_answerable=40, n_unanswerable=40
)


@lru_cache(maxsize=1)
def learned() -> Learned:
    """One part over all that Ann can reach, and a greater one over tools of the vault, too."""
    said = {"shop.get_parcel": "wismo", "shop.cancel_order": "chargeback", "desk.get_ticket": "escalation"}
    ends = (
        "for the lady from Leeds",
        "again please",
        "number 4711",
        "before noon",
        "for Mister Brown",
        "as always",
        "now",
    )
    parts = []
    for tools in (OPEN, (*OPEN, secret("vault.open_safe", "Open the safe."))):
        index = Index.build(sorted(tools, key=lambda t: t.tool_id), embedder=bundled_embedder())
        place = {one.tool_id: number for number, one in enumerate(index.tools)}
        examples = [
            Example(text=f"{word} {end}", called=(place[tool_id],), subjects=frozenset([("ann", "bob", "cleo")[n % 3]]))
            for tool_id, word in said.items()
            for n, end in enumerate(ends)
        ]
        part = fit(
            index.view(everyone(index)),
            examples,
            tools=[(one.tool_id, one.digest) for one in index.tools],
            tenant="acme",
            model_id=index.model_id,
            min_subjects=2,
        )
        assert part is not None
        parts.append(part)
    return Learned(parts=tuple(parts))


def in_order(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    return tuple(sorted(tools, key=lambda one: one.tool_id))


def pipeline_of(index: Index, setup: Setup) -> Pipeline:
    """A pipeline over the tools of an index."""
    policy = PolicyEngine.from_text(POLICY)
    tools = index.tools
    floor = DEFAULT_FLOOR if setup.calibration is None else setup.calibration.floor
    return Pipeline(
        snapshot=CatalogSnapshot(version=digest_of([(t.tool_id, t.digest) for t in tools]), tools=tools),
        policy=policy,
        classes=policy.classes(tools),
        facts=routing_facts(tools),
        index=index,
        options=PipelineOptions(
            confidence_floor=floor,
            top_k=50,
            unknown_risk=dict.fromkeys(Channel, "allow"),
            calibration=setup.calibration,
            adapt=setup.adapt,
            rerank=setup.rerank,
        ),
        cost=estimate_tokens,
        checker=ArgumentChecker(),
        learned=setup.learned,
    )


def seen(index: Index, setup: Setup, requests: Sequence[SelectRequest] = REQUESTS) -> dict[str, str]:
    """All that Ann sees, by request, and behind it every number of the ranking: as text, bit for bit."""
    pipeline = pipeline_of(index, setup)
    view = pipeline.view(ANN, Channel.LIBRARY)
    told = [view.version, view.policy_version, view.index_version, view.namespaces, [t.tool_id for t in view.tools]]
    got = {"view": json.dumps(told)}
    for request in requests:
        done = pipeline.select(request, caller=ANN, channel=Channel.LIBRARY)
        got[request.task] = json.dumps([asdict(done.selection), [r.caller_view for r in done.records]], default=str)
        assert view.search is not None
        ranking = pipeline.ranked(view.search, request, top_k=50)
        # A tool's number tells how many stand before it; no caller sees it.
        hits = tuple(replace(hit, tool_idx=0) for hit in ranking.hits)
        got[f"ranking {request.task}"] = repr(replace(ranking, hits=hits))
    return got


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Where two callers see different things."""
    return [where for where in one.keys() | other.keys() if one.get(where) != other.get(where)]
