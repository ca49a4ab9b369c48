"""What is remembered of a caller's view, and whom it serves."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

import toolcrib.pipeline as pipeline_module
from toolcrib.gate.arguments import ArgumentChecker
from toolcrib.pipeline import Pipeline, PipelineOptions
from toolcrib.policy.engine import PolicyEngine
from toolcrib.routing.facts import routing_facts
from toolcrib.selection.tokens import estimate_tokens
from toolcrib.types import (
    Caller,
    CallerKind,
    CatalogSnapshot,
    Channel,
    Credential,
    Risk,
    RiskSource,
    Tool,
    ToolMetadata,
    ToolState,
)

TOOLS = tuple(
    Tool(
        tool_id=f"a.{name}", server_id="a", name=name, definition={"name": name}, digest=f"sha256:{name}",
        state=ToolState.APPROVED,
        metadata=ToolMetadata(namespace=name, risk=risk, risk_source=RiskSource.OPERATOR, required_scopes=scopes),
    )
    for name, risk, scopes in (
        ("x", Risk.READ, ()), ("y", Risk.DESTRUCTIVE, ("s",)), ("z", Risk.READ, ("t",)),
    )
)  # fmt: skip
BROKEN = "permit (principal, action, resource) when { 9223372036854775807 + 1 > 0 };"


def a_pipeline(text: str | None = None, tools: tuple[Tool, ...] = TOOLS) -> Pipeline:
    policy = PolicyEngine.from_text(text)
    return Pipeline(
        snapshot=CatalogSnapshot(version="v", tools=tools), policy=policy, classes=policy.classes(tools),
        facts=routing_facts(tools), index=None, cost=estimate_tokens, checker=ArgumentChecker(),
        options=PipelineOptions(confidence_floor=0.0, top_k=5, unknown_risk=dict.fromkeys(Channel, "allow")),
    )  # fmt: skip


def test_callers_that_policy_cannot_tell_apart_share_a_view() -> None:
    pipeline = a_pipeline()
    ann = Caller(subject="ann", tenant="acme")
    view = pipeline.view(ann, Channel.HTTP)
    session = replace(ann, credential=Credential(kind="jwt", session="1"))
    for other in (ann, replace(ann), replace(ann, subject="ben"), session):
        assert pipeline.view(other, Channel.HTTP) is view
    assert pipeline.view(ann, Channel.STDIO) is not view


CHANGES: dict[str, Any] = {
    "kind": CallerKind.AGENT,
    "on_behalf_of": "x",
    "tenant": "x",
    "roles": frozenset("x"),
    "scopes": frozenset("x"),
    "stage": "x",
    "environment": "x",
    "region": "x",
    "features": frozenset("x"),
    "clearance": "x",
    "acting_for": Caller(subject="ann"),
}


@pytest.mark.parametrize("changed", CHANGES)
def test_callers_that_differ_in_what_policy_can_read_never_share_a_view(changed: str) -> None:
    pipeline = a_pipeline()
    ann = Caller(subject="ann")
    assert pipeline.view(replace(ann, **{changed: CHANGES[changed]}), Channel.HTTP) is not pipeline.view(
        ann, Channel.HTTP
    )


def test_every_attribute_that_policy_can_read_is_among_those() -> None:
    assert {one.name for one in fields(Caller)} == {*CHANGES, "subject", "credential"}


def test_subjects_share_no_view_where_a_policy_names_one() -> None:
    pipeline = a_pipeline('permit (principal == User::"ann", action, resource);')
    assert pipeline.view(Caller(subject="ann"), Channel.HTTP).tools == TOOLS
    assert pipeline.view(Caller(subject="ben"), Channel.HTTP).tools == ()
    behind = Caller(subject="ann", acting_for=Caller(subject="ben"))
    assert pipeline.view(behind, Channel.HTTP).tools == ()


def test_a_view_that_rests_on_an_error_is_not_remembered() -> None:
    pipeline = a_pipeline(BROKEN)
    first = pipeline.view(Caller(subject="ann"), Channel.HTTP)
    assert first.eligibility.errors
    assert pipeline.view(Caller(subject="ann"), Channel.HTTP) is not first


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_module, "MAX_VIEWS", 4)
    monkeypatch.setattr(pipeline_module, "MAX_FINGERPRINTS", 8)
    pipeline = a_pipeline()
    for number in range(30):
        pipeline.view(Caller(subject=f"u{number}", tenant=f"t{number % 10}"), Channel.HTTP)
    assert (len(pipeline._views), len(pipeline._fingerprints)) == (4, 8)


def test_views_of_many_tools_are_forgotten_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_module, "MAX_VIEW_TOOLS", 5)
    pipeline = a_pipeline("permit (principal, action, resource);")
    for number in range(6):
        latest = pipeline.view(Caller(subject="u", tenant=f"t{number}"), Channel.HTTP)
    assert sum(len(view.tools) for view in pipeline._views.values()) <= max(5, len(latest.tools))
    assert latest in pipeline._views.values()


def test_versions_of_a_view_know_nothing_of_tools_out_of_reach() -> None:
    ann = Caller(subject="ann", scopes=frozenset("s"))
    view = a_pipeline().view(ann, Channel.HTTP)
    assert (view.tools, view.namespaces) == (TOOLS[:2], ("x", "y"))
    for others in (TOOLS[:2], (*TOOLS[:2], replace(TOOLS[2], digest="sha256:other"))):
        other = a_pipeline(tools=others).view(ann, Channel.HTTP)
        assert (other.version, other.policy_version, other.index_version, other.namespaces) == (
            view.version, view.policy_version, view.index_version, view.namespaces,
        )  # fmt: skip


def test_a_policy_version_tells_whether_a_call_waits() -> None:
    ann = Caller(subject="ann", scopes=frozenset("s"))
    asking = a_pipeline().view(ann, Channel.HTTP)
    trusting = a_pipeline('permit (principal, action, resource) when { resource.name != "z" };').view(ann, Channel.HTTP)
    assert (asking.version, asking.tools) == (trusting.version, trusting.tools)
    assert asking.policy_version != trusting.policy_version
