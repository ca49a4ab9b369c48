"""How fast, as ratios against a floor or a peer in the same run, over made-up catalogs.

    python benchmarks/speed.py [--tools 1000,10000,100000]

- search and select: text in, ranking or selection out, CPU time of the process (all threads), against the floor: one
  exact product of a request with the vectors of all tools in reach, in NumPy. `view_ms`: making a caller's view,
  once for all callers that policy treats alike.
- index: seconds to build, to update when ten tools changed, to save and to load.
- eligibility: one Cedar evaluation per decision class, against the peer way: one evaluation per tool.
- call overhead: judging a call, against the floor: checking its arguments alone.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import cedarpy
import numpy as np

from toolcrib.gate.arguments import ArgumentChecker
from toolcrib.pipeline import Pipeline, PipelineOptions
from toolcrib.policy.engine import PolicyEngine
from toolcrib.policy.entities import caller_entity, caller_uid, context_json, tool_entity, tool_uid
from toolcrib.policy.shipped import default_policy_text
from toolcrib.retrieval.dense import bundled_embedder
from toolcrib.retrieval.index import Index, index_key
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


def median_ms(
    work: Callable[[], Any], *, n_runs: int, clock: Callable[[], float] = time.perf_counter, n_warm: int = 1
) -> float:
    """Median milliseconds of one run, after some that do not count."""
    for _ in range(n_warm):
        work()
    spent = []
    for _ in range(n_runs):
        start = clock()
        work()
        spent.append((clock() - start) * 1e3)
    return statistics.median(spent)


def measure(n_tools: int) -> dict[str, Any]:
    """All figures, milliseconds and ratios."""
    tools = catalog(n_tools)
    index, index_s = _index(tools)
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
        "index_s": index_s,
        "select": _select(pipeline, ann),
        "eligibility": _eligibility(pipeline, ann),
        "judge": _judge(pipeline, ann),
    }


def _index(tools: tuple[Tool, ...]) -> tuple[Index, dict[str, float]]:
    """The index, and CPU seconds of all that is done to one."""
    embedder = bundled_embedder()
    spent: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        done = work()
        spent[name] = round(time.process_time() - start, 3)
        return done

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "one.idx"
        index = timed("build", lambda: Index.build(tools, embedder=embedder))
        timed("save", lambda: index.save(path))
        spent["megabytes"] = round(path.stat().st_size / 1e6, 1)
        timed("key", lambda: index_key(tools, embedder))
        timed("load", lambda: Index.load(path, tools=tools, embedder=embedder, expect_key=index.key))
        some = {*range(0, len(tools), max(1, len(tools) // 10))}
        changed = [replace(t, digest=f"sha256:{t.tool_id}") if i in some else t for i, t in enumerate(tools)]
        timed("update_ten", lambda: index.updated(changed, embedder=embedder))
    return index, spent


def _select(pipeline: Pipeline, ann: Caller) -> dict[str, float]:
    """CPU milliseconds; each request is another text."""
    texts = [f"{v} the {n} of {p}" for v in VERBS for n in NOUNS for p in PLACES]
    random.Random(1).shuffle(texts)
    tasks = itertools.cycle(texts)
    start = time.process_time()
    view = pipeline.view(ann, Channel.LIBRARY)
    view_ms = (time.process_time() - start) * 1e3
    assert view.search is not None
    search = view.search.search
    vectors = np.random.default_rng(0).integers(-127, 127, (int(view.reach.sum()), 256)).astype(np.float32)
    query = vectors[0].copy()
    measured = partial(median_ms, n_runs=100, n_warm=20, clock=time.process_time)
    floor = measured(lambda: np.einsum("ij,j->i", vectors, query))
    ranked = measured(lambda: search(next(tasks), top_k=pipeline.options.top_k))
    ours = measured(lambda: pipeline.select(SelectRequest(task=next(tasks)), caller=ann, channel=Channel.LIBRARY))
    return {
        "ms": round(ours, 3),
        "search_ms": round(ranked, 3),
        "floor_ms": round(floor, 3),
        "ratio": round(ours / floor, 1),
        "view_ms": round(view_ms, 1),
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
    """Print one JSON list, an entry per size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", default="1000,10000,100000")
    print(json.dumps([measure(int(size)) for size in parser.parse_args().tools.split(",")], indent=2))


if __name__ == "__main__":
    main()
