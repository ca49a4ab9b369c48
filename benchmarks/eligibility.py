"""What a new caller costs, and a known one: policy over a whole catalog, beside plain evaluation tool by tool.

    python benchmarks/eligibility.py [--tools 1000 10000 100000]

- new identity: `PolicyEngine.eligibility` with the snapshot's classes at hand, by residuals and by class, against one
  `is_authorized` per tool and action (the floor of what others do; over a sample, and extrapolated: it says so).
- known identity: `Pipeline.view`, and the bit of one tool in it, over a mixed stream of 10,000 callers.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import cedarpy

from toolcrib.gate.arguments import ArgumentChecker
from toolcrib.pipeline import MAX_FINGERPRINTS, MAX_VIEWS, Pipeline, PipelineOptions
from toolcrib.policy.classes import DecisionClasses
from toolcrib.policy.engine import PolicyEngine
from toolcrib.policy.entities import caller_entity, caller_uid, context_json, tool_entity, tool_uid
from toolcrib.policy.shipped import default_policy_text
from toolcrib.routing.facts import routing_facts
from toolcrib.selection.tokens import estimate_tokens
from toolcrib.types import (
    Caller,
    CallerKind,
    CatalogSnapshot,
    Channel,
    Eligibility,
    Risk,
    RiskSource,
    Tool,
    ToolMetadata,
    ToolState,
)

SIZES = (1_000, 10_000, 100_000)
N_NAMESPACES = 48
N_TEAMS = 60
N_RULES = 100
N_SAMPLED = 100
N_NEW = 20
N_CALLERS = 10_000
N_PROFILES = 200
N_LOOKUPS = 300_000


def catalog(n_tools: int) -> tuple[Tool, ...]:
    """Made-up tools: 20 to 1,500 servers, each with its namespace, team and habits, and exceptions per tool."""
    rng = random.Random(7)
    servers = [_server(rng) for _ in range(max(20, min(1_500, n_tools // 30)))]
    tools = []
    for number in range(n_tools):
        server_idx = rng.randrange(len(servers))
        habits = servers[server_idx]
        risk = rng.choices(list(Risk), [6, 3, 1])[0]
        scopes = (f"{habits['namespace']}:{'read' if risk is Risk.READ else 'write'}",)
        said = ToolMetadata(
            **habits,
            required_scopes=scopes if rng.random() < 0.95 else (*scopes, f"extra-{rng.randrange(5)}"),
            stages=() if rng.random() < 0.95 else (f"stage-{rng.randrange(3)}",),
            risk=risk,
            risk_source=RiskSource.OPERATOR if rng.random() < 0.9 else RiskSource.UNKNOWN,
        )
        name = f"tool_{number}"
        tools.append(
            Tool(
                tool_id=f"s{server_idx}.{name}", server_id=f"s{server_idx}", name=name, definition={"name": name},
                digest=f"sha256:{number:064x}", state=ToolState.APPROVED, metadata=said,
            )
        )  # fmt: skip
    return tuple(sorted(tools, key=lambda tool: tool.tool_id))


def _server(rng: random.Random) -> dict[str, Any]:
    return {
        "namespace": f"ns-{rng.randrange(N_NAMESPACES)}",
        "owner": f"team-{rng.randrange(N_TEAMS)}",
        "tenants": () if rng.random() < 0.7 else (f"tenant-{rng.randrange(4)}",),
        "environments": () if rng.random() < 0.6 else (rng.choice(("production", "staging")),),
        "data_class": rng.choice(("", "internal", "personal", "secret")),
    }


def hundred_rules() -> str:
    """The built-in policy and as many rules of a company as make it a hundred."""
    shapes = (
        'forbid (principal, action, resource in Namespace::"ns-{n}") unless {{ principal in Role::"role-{r}" }};',
        'forbid (principal, action == Action::"call", resource in Server::"s{n}")'
        ' when {{ context.environment == "production" && !principal.scopes.contains("ops-{n}") }};',
        'forbid (principal, action, resource) when {{ resource.data_class == "secret" &&'
        ' resource.owner == "team-{n}" && principal.clearance != "secret" }};',
        'forbid (principal, action, resource) when {{ resource.owner == "team-{n}" && resource.risk != "read"'
        ' && !principal.roles.contains("role-{r}") }};',
        'permit (principal in Role::"role-{r}", action, resource in Namespace::"ns-{n}") when {{ resource.enabled }};',
        '@obligation("needs_approval") forbid (principal is Agent, action == Action::"call",'
        ' resource in Namespace::"ns-{n}") when {{ resource.risk == "write" }} unless {{ context.approved }};',
    )
    text = default_policy_text()
    n_built_in = len(PolicyEngine.from_text(text)._policies.labels)
    rules = [
        f'@id("rule-{n}") ' + shapes[n % len(shapes)].format(n=n % N_NAMESPACES, r=n % 12)
        for n in range(N_RULES - n_built_in)
    ]
    return "\n".join([text, *rules])


def callers(n_callers: int, *, n_profiles: int) -> list[Caller]:
    """Made-up callers, of so many different sets of attributes."""
    rng = random.Random(11)
    profiles = [
        Caller(
            subject="",
            kind=rng.choice(list(CallerKind)),
            tenant=f"tenant-{rng.randrange(4)}",
            roles=frozenset(f"role-{rng.randrange(12)}" for _ in range(2)),
            scopes=frozenset(
                f"ns-{n}:{verb}" for n in range(N_NAMESPACES) for verb in ("read", "write") if rng.random() < 0.6
            ),
            stage=f"stage-{rng.randrange(3)}",
            environment=rng.choice(("production", "staging")),
        )
        for _ in range(n_profiles)
    ]
    return [replace(profiles[number % n_profiles], subject=f"caller-{number}") for number in range(n_callers)]


def _spent_ms(work: Callable[[Caller], Any], who: Sequence[Caller]) -> list[float]:
    spent = []
    for caller in who:
        start = time.perf_counter()
        work(caller)
        spent.append((time.perf_counter() - start) * 1e3)
    return spent


def new_identity(tools: tuple[Tool, ...], text: str) -> dict[str, Any]:
    """Milliseconds for a caller that was never seen: the median and the worst of some, each another."""
    engine = PolicyEngine.from_text(text)
    start = time.perf_counter()
    classes = engine.classes(tools)
    classes_s = time.perf_counter() - start
    who = callers(N_NEW + 2, n_profiles=N_NEW + 2)

    def ask(caller: Caller) -> Eligibility:
        return engine.eligibility(caller, **_question(tools, classes))

    methods = {ask(caller).method for caller in who[:2]}
    ours = _spent_ms(ask, who[2:])
    by_class = _spent_ms(lambda caller: engine.eligibility_by_class(caller, **_question(tools, classes)), who[2:4])
    per_tool, n_sampled = _per_tool_ms(tools, text, who[2])
    median = statistics.median(ours)
    return {
        "classes": len(classes.representatives), "classes_s": round(classes_s, 2), "method": "/".join(sorted(methods)),
        "ms": round(median, 1), "worst_ms": round(max(ours), 1),
        "by_class_ms": round(min(by_class)), "per_tool_ms": round(per_tool),
        "per_tool_extrapolated_from": n_sampled if n_sampled < len(tools) else "no: all tools",
        "times_faster_than_by_class": round(min(by_class) / median), "than_per_tool": round(per_tool / median),
    }  # fmt: skip


def _question(tools: tuple[Tool, ...], classes: DecisionClasses) -> dict[str, Any]:
    return {
        "tools": tools, "classes": classes, "snapshot_version": "bench", "channel": Channel.HTTP,
        "unknown_risk": "needs_approval",
    }  # fmt: skip


def _per_tool_ms(tools: tuple[Tool, ...], text: str, caller: Caller) -> tuple[float, int]:
    """One plain decision per tool and action, policies parsed once; and over how many tools it was measured."""
    policies = cedarpy.PolicySet.from_str(text)
    sampled = tools[:: max(1, len(tools) // N_SAMPLED)]
    context = context_json(caller, channel=Channel.HTTP, unknown_risk="needs_approval", approved=False)
    start = time.perf_counter()
    for tool in sampled:
        entities = cedarpy.Entities.from_json_str(json.dumps([caller_entity(caller), tool_entity(tool)]))
        for action in ("discover", "call"):
            request = {
                "principal": caller_uid(caller), "action": {"type": "Action", "id": action},
                "resource": tool_uid(tool), "context": context,
            }  # fmt: skip
            cedarpy.is_authorized(request, policies, entities)
    return (time.perf_counter() - start) * 1e3 * len(tools) / len(sampled), len(sampled)


def known_identity(tools: tuple[Tool, ...]) -> dict[str, Any]:
    """Microseconds for a look-up, decisions a minute over a mixed stream, and what memory they take."""
    policy = PolicyEngine.from_text()
    pipeline = Pipeline(
        snapshot=CatalogSnapshot(version="bench", tools=tools), policy=policy, classes=policy.classes(tools),
        facts=routing_facts(tools), index=None, cost=estimate_tokens, checker=ArgumentChecker(),
        options=PipelineOptions(
            confidence_floor=0.0, top_k=50, unknown_risk=dict.fromkeys(Channel, "needs_approval")
        ),
    )  # fmt: skip
    who = callers(N_CALLERS, n_profiles=N_PROFILES)
    for caller in who:
        pipeline.view(caller, Channel.HTTP)
    rng = random.Random(13)
    # Each request brings a caller of its own, built anew from its credential: equal, not the same object.
    stream = [(replace(rng.choice(who)), rng.randrange(len(tools))) for _ in range(N_LOOKUPS)]
    before_kib = _rss_kib()
    start = time.perf_counter()
    for caller, number in stream:
        _ = pipeline.view(caller, Channel.HTTP).reach[number]
    spent_s = time.perf_counter() - start
    grown_kib = _rss_kib() - before_kib
    one = who[0]
    start = time.perf_counter()
    for _ in range(100_000):
        pipeline.view(one, Channel.HTTP)
    same_us = (time.perf_counter() - start) * 10
    n_strangers = 3 * MAX_FINGERPRINTS
    for number in range(n_strangers):
        pipeline.view(replace(who[number % N_PROFILES], subject=f"stranger-{number}"), Channel.HTTP)
    return {
        "callers": N_CALLERS, "profiles": N_PROFILES, "lookups": N_LOOKUPS,
        "lookup_us": round(same_us, 2), "decision_in_stream_us": round(spent_s / N_LOOKUPS * 1e6, 2),
        "decisions_per_minute": round(N_LOOKUPS / spent_s * 60),
        "grown_kib_in_stream": grown_kib, "views": len(pipeline._views), "views_at_most": MAX_VIEWS,
        "callers_remembered_after_strangers": len(pipeline._fingerprints), "callers_at_most": MAX_FINGERPRINTS,
    }  # fmt: skip


def _rss_kib() -> int:
    """The most memory the process ever held, KiB (Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure(sizes: Sequence[int]) -> dict[str, Any]:
    """All figures by number of tools and policy."""
    found: dict[str, Any] = {}
    for n_tools in sizes:
        tools = catalog(n_tools)
        found[f"new identity, {n_tools} tools, built-in policy"] = new_identity(tools, default_policy_text())
        found[f"new identity, {n_tools} tools, {N_RULES} rules"] = new_identity(tools, hundred_rules())
    found[f"known identity, {sizes[0]} tools"] = known_identity(catalog(sizes[0]))
    return found


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=int, nargs="+", default=list(SIZES))
    print(json.dumps(measure(parser.parse_args().tools), indent=2))


if __name__ == "__main__":
    main()
