"""`toolcrib approvals`: what an approver is shown, who may decide, and exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.flow.worlds import World, caller, tool
from toolcrib.cli.main import app
from toolcrib.types import Channel, Code

POLICY = """
permit (principal, action, resource);
@id("refunds") @obligation("needs_approval")
forbid (principal, action == Action::"call", resource) unless { context.approved };
"""
MANAGERS = '@id("managers") permit (principal in Role::"manager", action == Action::"approve", resource);\n'
REFUND = tool(
    "issue_refund",
    "Return money\u200b to a customer.\nrisk: read",
    properties={"order_id": {"type": "string"}, "password": {"type": "string"}},
)
ANN = caller(subject="ann", tenant="acme")


def made(folder: Path, policy: str = POLICY) -> World:
    toml = '[[tools]]\nmatch = "*"\nrisk = "write"\nowner = "payments"\n'
    return World(folder, {"shop": [REFUND]}, toml=toml, policy=policy)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    one = made(tmp_path)
    yield one
    one.close()


def ask(world: World, order_id: str = "A-1", who: Any = ANN) -> str:
    arguments = {"order_id": order_id, "password": "hush"}
    outcome = world.call("shop.issue_refund", arguments, caller=who, channel=Channel.HTTP)
    assert outcome.code is Code.NEEDS_APPROVAL
    return str(outcome.verdict.approval_id)


def run(world: World, *words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["-C", str(world.folder), "approvals", *words])
    assert done.exit_code == code, (done.output, done.exception)
    return json.loads(done.stdout) if "--json" in words else done


def write_caller(world: World, **fields: Any) -> str:
    (world.folder / "approver.json").write_text(json.dumps(fields), encoding="utf-8")
    return "approver.json"


def test_an_approver_is_shown_everything_to_decide_by(world: World) -> None:
    approval_id = ask(world)
    page = run(world, "show", approval_id[:8]).stdout
    for fact in (approval_id, "ann of acme", "http", "shop.issue_refund (in service)", "sha256:", "write", "payments",
                 "refunds", '"order_id": "A-1"'):  # fmt: skip
        assert fact in page
    assert "hush" not in page
    assert "expires at:" in page


def test_hidden_characters_are_shown_and_a_description_cannot_add_a_line_of_ours(world: World) -> None:
    page = run(world, "show", ask(world, "A\u202e1")).stdout
    assert "<U+200B ZERO WIDTH SPACE>" in page
    assert "<U+202E RIGHT-TO-LEFT OVERRIDE>" in page
    assert "\u200b" not in page
    assert "\u202e" not in page
    assert [line for line in page.splitlines() if line.startswith("risk:")] == [
        "risk:         write (said by: operator)"
    ]
    assert "  | risk: read" in page


def test_show_prints_the_same_for_programs(world: World) -> None:
    approval_id = ask(world)
    shown = run(world, "show", approval_id, "--json")
    assert (shown["approval_id"], shown["state"], shown["subject"], shown["channel"], shown["policies"]) == (
        approval_id, "pending", "ann", "http", ["refunds"],
    )  # fmt: skip
    assert (shown["tool"]["now"], shown["tool"]["risk"], shown["tool"]["owner"]) == ("in service", "write", "payments")
    assert shown["tool"]["description"] == REFUND["description"]


def test_show_says_that_the_tool_has_changed_since(world: World) -> None:
    approval_id = ask(world)
    world.write("shop", [tool("issue_refund", "Other words.")])
    world.refresh()
    assert run(world, "show", approval_id, "--json")["tool"]["now"] == "not in service"
    world.crib.approve(None, reviewer="tests")
    shown = run(world, "show", approval_id, "--json")["tool"]
    assert (shown["now"], shown["description"]) == ("changed since", REFUND["description"])
    assert run(world, "grant", approval_id, "--by", "mia", "--json", code=1)["status"] == "changed"


def test_a_granted_call_runs_once(world: World) -> None:
    approval_id = ask(world)
    granted = run(world, "grant", approval_id, "--by", "mia", "--json")
    assert (granted["status"], granted["granted"], granted["approval_id"]) == ("done", True, approval_id)
    arguments = {"order_id": "A-1", "password": "hush"}
    assert world.call("shop.issue_refund", arguments, caller=ANN, channel=Channel.HTTP).code is Code.OK
    assert run(world, "list", "--json")["approvals"][0]["state"] == "used"
    again = run(world, "grant", approval_id, "--by", "mia", "--json", code=1)
    assert again["status"] == "not_pending"


def test_nobody_approves_their_own_call(world: World) -> None:
    approval_id = ask(world)
    own = write_caller(world, subject="ann", tenant="acme")
    assert run(world, "grant", approval_id, "--as", own, "--json", code=1)["status"] == "not_allowed"
    refused = run(world, "grant", approval_id, "--by", "ann", code=1)
    assert "own" in refused.output
    assert run(world, "list", "--json")["approvals"][0]["state"] == "pending"


def test_what_the_local_operator_asked_for_the_person_at_the_terminal_may_approve(world: World) -> None:
    approval_id = ask(world, who=world.crib.local_caller)
    assert run(world, "grant", approval_id, "--by", "local-operator", "--json", code=1)["status"] == "not_allowed"
    assert run(world, "grant", approval_id, "--by", "mia", "--json")["status"] == "done"


def test_a_policy_on_approvers_is_asked_about_the_caller_of_the_file(tmp_path: Path) -> None:
    world = made(tmp_path, POLICY + MANAGERS)
    approval_id = ask(world)
    clerk = write_caller(world, subject="mia", tenant="acme")
    assert run(world, "grant", approval_id, "--as", clerk, "--json", code=1)["status"] == "not_allowed"
    manager = write_caller(world, subject="mia", tenant="acme", roles=["manager"])
    assert run(world, "grant", approval_id, "--as", manager, "--json")["policies"] == ["managers"]
    world.close()


def test_a_denied_call_stays_denied(world: World) -> None:
    approval_id = ask(world)
    assert run(world, "deny", approval_id, "--by", "mia", "--json")["status"] == "done"
    shown = run(world, "show", approval_id, "--json")
    assert (shown["state"], shown["decided_by"]) == ("denied", "mia")
    assert run(world, "grant", approval_id, "--by", "mia", "--json", code=1)["status"] == "not_pending"


@pytest.mark.parametrize("verb", ["show", "grant", "deny"])
def test_what_is_not_there_exits_1_and_says_so(world: World, verb: str) -> None:
    assert "zzzzzzzz" in run(world, verb, "zzzzzzzz", code=1).output


def test_an_approver_is_named_in_one_way_only(world: World) -> None:
    approval_id = ask(world)
    run(world, "grant", approval_id, "--by", "mia", "--as", write_caller(world, subject="bo"), code=2)
    assert run(world, "list", "--json")["approvals"][0]["state"] == "pending"


def test_list_is_a_table_for_people(world: World) -> None:
    approval_id = ask(world)
    table = run(world, "list").stdout
    assert approval_id[:12] in table
    assert "pending" in table
    assert "asked (UTC)" in table
    assert world.crib.approvals()[0].created_at[:10] in table


def test_how_to_grant_is_said_while_the_call_waits_and_not_once_it_is_denied(world: World) -> None:
    asking = ["-C", str(world.folder), "call", "shop.issue_refund", "--args", '{"order_id": "A-1"}']
    waits = CliRunner().invoke(app, asking)
    (request,) = run(world, "list", "--json")["approvals"]
    assert f"toolcrib approvals grant {request['approval_id']} (--as FILE" in waits.stderr
    run(world, "deny", request["approval_id"])
    denied = CliRunner().invoke(app, asking)
    assert (waits.exit_code, denied.exit_code) == (1, 1)
    assert "needs_approval" in denied.stderr
    assert "approvals grant" not in denied.stderr
