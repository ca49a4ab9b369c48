"""Loading: what is accepted, what is refused and where, and what is read out of the text."""

from __future__ import annotations

import pytest

from toolcrib.errors import PolicySyntaxError
from toolcrib.policy.engine import PolicyEngine
from toolcrib.policy.policies import load_policies
from toolcrib.types import Effect

from .making import PERMIT_ALL, a_caller, a_tool, call_decision, eligible

ALL = "permit (principal, action, resource)"


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        pytest.param("permit (principal, action resource);", "does not parse", id="syntax"),
        pytest.param("permit (principal, action, resource)", "does not parse", id="unfinished"),
        pytest.param("@if permit (principal, action, resource) when { ;", "does not parse", id="broken-condition"),
        pytest.param(ALL + " when { resource.ownr == 1 };", "ownr", id="unknown-attribute"),
        pytest.param(ALL + " when { resource.owner == 1 };", "schema", id="wrong-type"),
        pytest.param('permit (principal in Group::"x", action, resource);', "Group", id="unknown-entity-type"),
        pytest.param('permit (principal, action == Action::"cal", resource);', "cal", id="unknown-action"),
        pytest.param(ALL + " when { context.hour > 3 };", "hour", id="unknown-context"),
        pytest.param("permit (principal == ?principal, action, resource);", "template", id="template"),
        pytest.param('@id("first") ' + ALL + ";", "first", id="id-twice"),
        pytest.param(
            '@obligation("ask_mum") forbid (principal, action, resource);', "ask_mum", id="unknown-obligation"
        ),
        pytest.param("@obligation forbid (principal, action, resource);", "obligation", id="bare-obligation"),
        pytest.param(
            '@obligation("needs_approval") permit (principal, action == Action::"call", resource);',
            "on a permit",
            id="obligation-on-permit",
        ),
        pytest.param(
            '@obligation("needs_approval") forbid (principal, action, resource) unless { context.approved };',
            "discovery",
            id="obligation-on-discovery",
        ),
        pytest.param(
            '@obligation("needs_approval")forbid(principal, action in [Action::"call", Action::"discover"], resource);',
            "discovery",
            id="obligation-on-both-actions",
        ),
        pytest.param(ALL + ' when { Tool::"a.b".risk == "read" };', "named entity", id="reads-another-tool"),
        pytest.param(
            ALL + ' when { (if context.approved then Tool::"a.b" else resource).risk == "read" };',
            "named entity",
            id="reads-another-tool-sometimes",
        ),
        pytest.param(
            'permit (principal is User, action, resource) when { User::"root" in Role::"admin" };',
            "named entity",
            id="asks-about-another-caller",
        ),
        pytest.param(ALL + " when { " + "(" * 5_000 + "true" + ")" * 5_000 + " };", "too deeply", id="deep-brackets"),
        pytest.param(ALL + " when { " + "true && " * 50_000 + "true };", "too deeply", id="endless-chain"),
        pytest.param(ALL + " when { " + "context.approved && " * 3_000 + "true };", "too deeply", id="long-chain"),
    ],
)
def test_a_bad_policy_is_refused_with_its_file_line_and_a_hint(bad: str, says: str) -> None:
    text = '// header\n@id("first")\n' + ALL + ";\n\n" + bad
    with pytest.raises(PolicySyntaxError) as caught:
        PolicyEngine.from_text(text, source="crib/policy.cedar")
    assert says in caught.value.what
    assert caught.value.where == "crib/policy.cedar:5"
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "  \n", "// nothing is permitted\n"], ids=["empty", "blank", "comment"])
def test_a_policy_that_says_nothing_permits_nothing(text: str) -> None:
    engine = PolicyEngine.from_text(text)
    found = eligible(engine, a_caller(), [a_tool()])
    assert not found.permitted.any()
    assert not found.disclosed.any()
    assert call_decision(engine, a_caller(), a_tool(), approved=True).effect is Effect.FORBID


def test_no_text_is_the_built_in_policy_and_an_empty_text_is_not() -> None:
    assert PolicyEngine.from_text(None).version == PolicyEngine.from_text().version
    assert PolicyEngine.from_text("").version != PolicyEngine.from_text().version


def test_the_version_changes_with_the_text_alone() -> None:
    assert PolicyEngine.from_text(PERMIT_ALL).version == PolicyEngine.from_text(PERMIT_ALL, source="elsewhere").version
    assert PolicyEngine.from_text(PERMIT_ALL).version != PolicyEngine.from_text(PERMIT_ALL + " ").version


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param(PERMIT_ALL, frozenset(), id="none"),
        pytest.param('forbid (principal, action, resource == Tool::"a.b");', {"a.b"}, id="scope"),
        pytest.param('forbid (principal, action, resource in Tool::"a.b");', {"a.b"}, id="scope-in"),
        pytest.param(
            ALL + ' unless { [Tool::"a.b", Tool::"a.c"].contains(resource) };', {"a.b", "a.c"}, id="condition"
        ),
        pytest.param('forbid (principal, action, resource in Server::"a");', frozenset(), id="a-server-is-no-tool"),
        pytest.param(ALL + ' when { resource.owner == "Tool" };', frozenset(), id="a-string-is-no-tool"),
    ],
)
def test_tools_that_policies_name_are_known(text: str, named: frozenset[str]) -> None:
    assert PolicyEngine.from_text(text).named_tools == named


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param(PERMIT_ALL, False, id="nobody"),
        pytest.param('permit (principal in Role::"admin", action, resource);', False, id="a-role-is-no-subject"),
        pytest.param("permit (principal is Agent, action, resource);", False, id="a-type-is-no-subject"),
        pytest.param('permit (principal == User::"ann", action, resource);', True, id="user"),
        pytest.param(ALL + ' when { principal == Agent::"bot" };', True, id="agent-in-condition"),
        pytest.param(
            'permit (principal is Workload, action, resource) when { [Workload::"ci"].contains(principal) };',
            True,
            id="workload-in-set",
        ),
    ],
)
def test_whether_policies_name_a_subject_is_known(text: str, names: bool) -> None:
    assert PolicyEngine.from_text(text).names_subjects is names


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        pytest.param(PERMIT_ALL, False, id="no"),
        pytest.param(ALL + ' when { resource.name like "get_*" };', True, id="like"),
        pytest.param(ALL + ' when { resource["name"] == "x" };', True, id="index"),
        pytest.param(ALL + ' when { resource.namespace == "name" };', False, id="another-attribute"),
    ],
)
def test_whether_policies_read_tool_names_is_known(text: str, reads: bool) -> None:
    assert load_policies(text, source="test").reads_names is reads


def test_policies_without_an_id_are_called_by_number_and_line() -> None:
    decision = call_decision(PolicyEngine.from_text(f"\n\n{ALL}; {ALL};"), a_caller(), a_tool())
    assert decision.policies == ("policy0 (line 3)", "policy1 (line 3)")


def test_a_group_behind_is_may_be_named_in_a_condition() -> None:
    engine = PolicyEngine.from_text(ALL + ' when { resource is Tool in Server::"a" };')
    assert eligible(engine, a_caller(), [a_tool("a.x"), a_tool("b.x")]).permitted.tolist() == [True, False]


@pytest.mark.parametrize(
    ("condition", "depends"),
    [
        pytest.param("context.approved", True, id="reads-it"),
        pytest.param('context["approved"]', True, id="index"),
        pytest.param('context.stage == "x"', False, id="reads-another"),
        pytest.param("context has target", False, id="has-another"),
        pytest.param("context == context", True, id="the-context-as-a-whole"),
        pytest.param("resource.enabled", False, id="no-context"),
    ],
)
def test_which_policies_may_say_something_else_once_approved_is_known(condition: str, depends: bool) -> None:
    loaded = load_policies(ALL + ";\n" + ALL + f" when {{ {condition} }};", source="test")
    assert loaded.by_approval.ids == (("policy1",) if depends else ())


@pytest.mark.parametrize(
    ("text", "depends"),
    [
        pytest.param(ALL + ";", False, id="bare"),
        pytest.param('permit (principal, action == Action::"discover", resource);', True, id="scope"),
        pytest.param('permit (principal, action in [Action::"call", Action::"discover"], resource);', True, id="both"),
        pytest.param('permit (principal, action == Action::"call", resource);', False, id="not-on-discovery"),
        pytest.param(ALL + ' when { action == Action::"call" };', True, id="condition"),
        pytest.param(ALL + ' when { resource.owner == "action" };', False, id="a-word"),
    ],
)
def test_which_policies_may_say_something_else_of_a_discovery_is_known(text: str, depends: bool) -> None:
    assert load_policies(text, source="test").by_action.ids == (("policy0",) if depends else ())


def test_which_policies_leave_discovery_out_is_known() -> None:
    scopes = ("action", *(f'action == Action::"{name}"' for name in ("discover", "call", "approve")))
    text = "\n".join(f"permit (principal, {scope}, resource);" for scope in scopes)
    assert load_policies(text, source="test").not_discovery == {"policy2", "policy3"}
