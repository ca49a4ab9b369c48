"""How fast, as ratios against a floor or a peer in the same run, over a made-up catalog.

    python benchmarks/speed.py [--tools 10000]

- select: text in, selection out, against the floor: one matrix-vector product over the same vectors.
- eligibility: one Cedar evaluation per decision class, against the peer way: one evaluation per tool.
- call overhead: judging a call, against the floor: checking its arguments alone.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import cedarpy
import numpy as np

from toolcrib.gate.arguments import ArgumentChecker
from toolcrib.pipeline import Pipeline, PipelineOptions
from toolcrib.policy.engine import PolicyEngine
from toolcrib.policy.entities import caller_entity, caller_uid, context_json, tool_entity, tool_uid
from toolcrib.policy.shipped import default_policy_text
from toolcrib.retrieval.dense import bundled_embedder
from toolcrib.retrieval.index import Index
from toolcrib.routing.facts import routing_facts
from toolcrib.selection.tokens import estimate_tokens
from toolcrib.types import (
    Caller,
    CatalogSnapshot,
    Channel,
    Risk,
    RiskSource,
    SelectRequest,
    Tool,
    ToolCall,
    ToolMetadata,
    ToolState,
)

VERBS = ("create", "list", "get", "delete", "update", "send", "cancel", "search", "export", "approve")
NOUNS = ("order", "invoice", "parcel", "customer", "report", "ticket", "branch", "backup", "meeting", "payment")
PLACES = ("billing", "shipping", "support", "code", "storage", "calendar", "crm", "hr", "ops", "fleet")
N_SAMPLED = 300


def catalog(n_tools: int) -> tuple[Tool, ...]:
    """Made-up tools on a tenth as many servers, with scopes and tenants as a company would set them."""
    rng = random.Random(7)
    tools = []
    for number in range(n_tools):
        verb, noun, place = rng.choice(VERBS), rng.choice(NOUNS), rng.choice(PLACES)
        server = f"{place}-{number % max(1, n_tools // 50)}"
        name = f"{verb}_{noun}_{number}"
        words = (
            f"{verb} one {noun} of the {place} system, by {rng.choice(NOUNS)} and {rng.choice(NOUNS)}, way {number}."
        )
        schema = {"type": "object", "properties": {f"{noun}_id": {"type": "string", "description": f"Which {noun}."}}}
        metadata = ToolMetadata(
            namespace=place,
            required_scopes=(f"{place}:{'read' if verb in ('list', 'get', 'search') else 'write'}",),
            tenants=() if rng.random() < 0.7 else (rng.choice(("acme", "globex")),),
            risk=Risk.READ,
            risk_source=RiskSource.OPERATOR,
        )
        definition = {"name": name, "description": words.capitalize(), "inputSchema": schema}
        tools.append(
            Tool(
                tool_id=f"{server}.{name}", server_id=server, name=name, definition=definition,
                digest=f"sha256:{number:064x}", state=ToolState.APPROVED, metadata=metadata,
            )
        )  # fmt: skip
    return tuple(sorted(tools, key=lambda tool: tool.tool_id))


def median_ms(work: Callable[[], Any], *, n_runs: int) -> float:
    """Median milliseconds of one run, after one that does not count."""
    work()
    spent = []
    for _ in range(n_runs):
        start = time.perf_counter()
        work()
        spent.append((time.perf_counter() - start) * 1e3)
    return statistics.median(spent)


def measure(n_tools: int) -> dict[str, Any]:
    """All figures, milliseconds and ratios."""
    tools = catalog(n_tools)
    embedder = bundled_embedder()
    start = time.perf_counter()
    index = Index.build(tools, embedder=embedder)
    build_s = time.perf_counter() - start
    policy = PolicyEngine.from_text()
    pipeline = Pipeline(
        snapshot=CatalogSnapshot(version="bench", tools=tools),
        policy=policy,
        classes=policy.classes(tools),
        facts=routing_facts(tools),
        index=index,
        options=PipelineOptions(confidence_floor=0.0, top_k=50, unknown_risk=dict.fromkeys(Channel, "allow")),
        cost=estimate_tokens,
        checker=ArgumentChecker(),
    )
    scopes = frozenset(f"{place}:read" for place in PLACES)
    ann = Caller(subject="ann", tenant="acme", scopes=scopes, environment="test")
    return {
        "tools": n_tools,
        "index_build_s": round(build_s, 2),
        "select": _select(pipeline, ann),
        "eligibility": _eligibility(pipeline, ann),
        "judge": _judge(pipeline, ann),
    }


def _select(pipeline: Pipeline, ann: Caller) -> dict[str, float]:
    tasks = iter(f"{v} the {n} of {p}" for v in VERBS for n in NOUNS for p in PLACES)
    view = pipeline.view(ann, Channel.LIBRARY)
    vectors = np.random.default_rng(0).integers(-127, 127, (int(view.reach.sum()), 256)).astype(np.float32)
    query = vectors[0].copy()
    ours = median_ms(
        lambda: pipeline.select(SelectRequest(task=next(tasks)), caller=ann, channel=Channel.LIBRARY), n_runs=60
    )
    floor = median_ms(lambda: vectors @ query, n_runs=60)
    return {
        "ms": round(ours, 3),
        "floor_ms": round(floor, 3),
        "ratio": round(ours / floor, 1),
        "in_reach": len(vectors),
    }


def _eligibility(pipeline: Pipeline, ann: Caller) -> dict[str, float]:
    tools, policy = pipeline.snapshot.tools, pipeline.policy
    ours = median_ms(
        lambda: policy.eligibility(
            ann, tools=tools, classes=pipeline.classes, snapshot_version="bench", channel=Channel.LIBRARY,
            unknown_risk="allow",
        ),
        n_runs=3,
    )  # fmt: skip
    policies = cedarpy.PolicySet.from_str(default_policy_text())
    sampled = tools[:: max(1, len(tools) // N_SAMPLED)]
    context = context_json(ann, channel=Channel.LIBRARY, unknown_risk="allow", approved=False)

    def one_by_one() -> None:
        for tool in sampled:
            entities = cedarpy.Entities.from_json_str(json.dumps([caller_entity(ann), tool_entity(tool)]))
            for action in ("discover", "call"):
                request = {
                    "principal": caller_uid(ann), "action": {"type": "Action", "id": action},
                    "resource": tool_uid(tool), "context": context,
                }  # fmt: skip
                cedarpy.is_authorized(request, policies, entities)

    peer = median_ms(one_by_one, n_runs=2) * len(tools) / len(sampled)
    n_classes = len(pipeline.classes.representatives)
    cached = median_ms(lambda: pipeline.view(ann, Channel.LIBRARY), n_runs=200)
    return {
        "ms": round(ours, 1), "per_tool_ms": round(peer, 1), "times_faster": round(peer / ours, 1),
        "classes": n_classes, "cached_ms": round(cached, 4),
    }  # fmt: skip


def _judge(pipeline: Pipeline, ann: Caller) -> dict[str, float]:
    tool = pipeline.view(ann, Channel.LIBRARY).tools[0]
    arguments = {next(iter(tool.input_schema["properties"])): "1"}
    call = ToolCall(tool_id=tool.tool_id, arguments=arguments, offered_digest=tool.digest)
    ours = median_ms(lambda: pipeline.judge(call, caller=ann, channel=Channel.LIBRARY), n_runs=100)
    floor = median_ms(lambda: pipeline.checker.check(tool, arguments), n_runs=100)
    return {"ms": round(ours, 3), "floor_ms": round(floor, 4), "ratio": round(ours / floor, 1)}


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=int, default=10_000)
    print(json.dumps(measure(parser.parse_args().tools), indent=2))


if __name__ == "__main__":
    main()
