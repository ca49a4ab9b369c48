"""Residuals over columns against plain Cedar, on expressions that no schema would let through as well.

An expression is put into one `permit`. Cedar is asked about each tool on its own: allowed, or an error, or neither.
"""

from __future__ import annotations

import json

import cedarpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.policy.columns import columns
from toolcrib.policy.entities import tool_entity
from toolcrib.policy.residuals import NotExact, satisfied
from toolcrib.types import Risk, ToolState

from .making import a_tool

TOOLS = [
    a_tool("s0.a", namespace="n0", owner="o", tenants=("a",), required_scopes=("x", "y"), risk=Risk.READ),
    a_tool("s0.a*b", namespace="n1", owner="n1", tenants=("a", "b"), required_scopes=("x",), risk=Risk.WRITE),
    a_tool("s1.abcab", owner="", tenants=(), stages=("a",), enabled=False, state=ToolState.DEPRECATED),
    a_tool("s1.b\na", namespace="s1", owner="s1", regions=("s1", "x"), enabled=False, risk=Risk.DESTRUCTIVE),
    a_tool("s2.ünïcödé", namespace="n0", owner="a", tenants=("x", "y"), required_scopes=("y", "x"), stages=("a", "b")),
    a_tool("s2.true", namespace="n0", owner="true", data_class="1", environments=("true",)),
]
MAX = "9223372036854775807"


def _against_cedar(expression: str) -> bool:
    """Compare; False where the expression is left to Cedar (or does not parse)."""
    text = f"permit (principal, action, resource) when {{ {expression} }};"
    try:
        handle = cedarpy.PolicySet.from_str(text)
    except ValueError:
        return False
    caller = {"uid": {"type": "User", "id": "ann"}, "attrs": {"tenant": "a", "scopes": ["x"]}, "parents": []}
    partial = cedarpy.is_authorized_partial(
        {"principal": 'User::"ann"', "action": 'Action::"call"', "resource": None, "context": {"approved": False}},
        handle,
        cedarpy.Entities.from_json_str(json.dumps([caller])),
    )
    over = columns(TOOLS)
    always = bool(partial.diagnostics.errors)
    try:
        truth = satisfied(partial.residuals["policy0"], over)
    except NotExact:
        return False
    for number, tool in enumerate(TOOLS):
        plain = cedarpy.is_authorized(
            {
                "principal": 'User::"ann"',
                "action": 'Action::"call"',
                "resource": {"type": "Tool", "id": tool.tool_id},
                "context": {"approved": False},
            },
            handle,
            cedarpy.Entities.from_json_str(json.dumps([caller, tool_entity(tool)])),
        )
        failed = always or (truth.failed is not None and bool(truth.failed[number]))
        assert failed == bool(plain.diagnostics.errors), (tool.tool_id, plain.diagnostics.errors)
        assert (bool(truth.holds[number]) and not failed) == plain.allowed, tool.tool_id
    return True


@pytest.mark.parametrize(
    "expression",
    [
        "resource.enabled",
        "!resource.enabled",
        'resource.owner == "o"',
        'resource.owner != "o"',
        '"o" == resource.owner',
        "resource.owner == resource.namespace",
        "resource.owner == resource.server_id || resource.enabled",
        'resource == Tool::"s0.a"',
        'resource == Tool::"s9.a"',
        "resource == principal",
        "resource == resource",
        'resource in Server::"s1"',
        'resource in Namespace::"n0"',
        'resource in Namespace::"s1"',
        'resource in Tool::"s0.a"',
        'resource in [Server::"s0", Namespace::"s1", Tool::"s2.true", Role::"nobody"]',
        "resource in []",
        "resource is Tool",
        "resource is User",
        'resource is Tool in Server::"s1"',
        "resource has owner",
        "resource has nothing",
        'resource has owner && resource.owner == "o"',
        'resource has nothing && resource.nothing == "o"',
        "resource.tenants.isEmpty()",
        'resource.tenants.contains("a")',
        "resource.tenants.contains(principal.tenant)",
        "resource.tenants.contains(resource.owner)",
        "resource.tenants.contains(1)",
        'resource.tenants.containsAll(["a"])',
        "resource.tenants.containsAny(resource.required_scopes)",
        "resource.required_scopes.containsAll(resource.tenants)",
        "principal.scopes.containsAll(resource.required_scopes)",
        "principal.scopes.containsAny(resource.required_scopes)",
        '["o", "n1"].contains(resource.owner)',
        "[resource.owner, resource.namespace].contains(principal.tenant)",
        "[resource.owner, 1, true].contains(true)",
        "[resource.owner].containsAll(resource.stages)",
        '[Tool::"s0.a", Tool::"s2.true"].contains(resource)',
        'resource.tenants == ["a", "b"]',
        "resource.required_scopes == resource.tenants",
        'resource.name like "a*"',
        r'resource.name like "a\*b"',
        'resource.name like "*"',
        'resource.name like ""',
        'resource.name like "ab*ab"',
        'resource.name like "abcab*ab"',
        'resource.name like "*a*b*"',
        'resource.name like "b*a"',
        'resource.name like "??*"',
        'resource.name like "*ï*é"',
        'if resource.enabled then resource.owner == "o" else resource.tenants.isEmpty()',
        '(if resource.enabled then resource.owner else resource.name) == "o"',
        "(if resource.enabled then 1 else 2) < 2",
        f"(if resource.enabled then {MAX} else 2) + 1 == 3",
        f"(if resource.enabled then {MAX} else 2) * 2 == 4",
        f"-(if resource.enabled then -{MAX} - 1 else 2) == -2",
        "(if resource.enabled then 5 else 2) - 3 >= 0",
        "(if resource.enabled then 5 else 2) > 3",
        f"resource.enabled && {MAX} + 1 > 0",
        f"resource.enabled || {MAX} + 1 > 0",
        f"{MAX} + 1 > 0 && resource.enabled",
        f"if resource.enabled then {MAX} + 1 > 0 else resource.tenants.isEmpty()",
        f"!(resource.enabled && {MAX} + 1 > 0)",
        f"(resource.enabled && {MAX} + 1 > 0) || resource.owner == resource.server_id",
        "resource.owner",
        "resource.nothing",
        "!resource.owner",
        "resource.owner && true",
        "true && resource.owner",
        "resource.enabled && resource.owner",
        "resource.enabled || resource.owner",
        "resource.owner || true",
        "resource.enabled && 1",
        "resource.enabled && true",
        "(if resource.enabled then 1 else 0) && true",
        "if resource.owner then true else false",
        "if resource.enabled then resource.owner else true",
        "resource.enabled < 3",
        "resource.enabled == 1",
        "(if resource.enabled then 1 else true) == true",
        "(if resource.enabled then 1 else true) == 1",
        'resource.owner.contains("o")',
        'resource.enabled like "x"',
        'resource.tenants like "x"',
        "resource.owner.isEmpty()",
        'resource.owner in Server::"s1"',
        'resource in "s1"',
        'resource in [Server::"s1", "x"]',
        'resource.tenants.containsAll("a")',
        "[resource.nothing].isEmpty()",
        "resource",
        "!resource",
        "resource && true",
        "resource.enabled == (resource.owner == resource.namespace)",
        '(resource.owner == "o") == (resource.tenants.contains("a"))',
        '["o", true].contains(resource.enabled)',
        "[resource].contains(resource)",
    ],
)
def test_a_residual_is_what_cedar_says_of_each_tool(expression: str) -> None:
    assert _against_cedar(expression), "left to Cedar"


@pytest.mark.parametrize(
    "expression",
    [
        'ip(resource.owner) == ip("10.0.0.1")',
        'decimal("1.0").lessThan(decimal(resource.owner))',
        "{a: resource.owner}.a == resource.namespace",
        '{a: resource.owner} == {a: "o"}',
        'resource.hasTag("x")',
        "(if resource.enabled then principal else resource) in [resource]",
        "(if resource.enabled then principal else resource) is Tool",
        '(if resource.enabled then principal else resource).tenant == "a"',
        "principal in [resource]",
    ],
)
def test_what_is_not_worked_out_here_is_left_to_cedar(expression: str) -> None:
    assert not _against_cedar(expression)


strings = st.sampled_from(['"o"', '"a"', '"x"', '""', "resource.owner", "resource.namespace", "resource.name"])
numbers = st.sampled_from(["0", "1", MAX, f"(-{MAX} - 1)", "(if resource.enabled then 1 else 2)"])
sets = st.sampled_from(["resource.tenants", "resource.stages", "principal.scopes", '["a", "x"]', "[resource.owner]"])
entities = st.sampled_from(["resource", "principal", 'Tool::"s0.a"', 'Server::"s0"', 'Namespace::"n0"'])
booleans = st.sampled_from(["true", "false", "resource.enabled", "context.approved", "resource.nothing"])
atoms = st.one_of(strings, numbers, sets, entities, booleans)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.sampled_from(["&&", "||", "&&", "||", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "in"])
    methods = st.sampled_from(["contains", "containsAll", "containsAny"])
    return st.one_of(
        st.builds(lambda left, sign, right: f"(({left}) {sign} ({right}))", inner, binary, inner),
        st.builds(lambda left, method, right: f"({left}).{method}({right})", inner, methods, inner),
        st.builds(lambda left: f"({left}).isEmpty()", inner),
        st.builds(lambda left, pattern: f'(({left}) like "{pattern}")', inner, st.sampled_from(["*", "a*", "*b*a"])),
        st.builds(lambda one, two, three: f"(if {one} then {two} else {three})", inner, inner, inner),
        st.builds(lambda one: f"!({one})", inner),
        st.builds(lambda one: f"-({one})", inner),
        st.builds(lambda one, two: f"[{one}, {two}]", inner, inner),
    )


@settings(max_examples=1_500, deadline=None)
@given(expression=st.recursive(atoms, _larger, max_leaves=8))
def test_any_expression_is_worked_out_as_cedar_does_or_left_to_it(expression: str) -> None:
    _against_cedar(expression)


def test_columns_are_of_the_representatives_in_order() -> None:
    over = columns(TOOLS)
    owners = over.attributes["owner"]
    assert [owners.values[code] for code in owners.codes] == [tool.metadata.owner for tool in TOOLS]


def test_no_tool_makes_no_column() -> None:
    assert columns([]).n_classes == 0
