"""`toolcrib policy check|test|diff|explain`: what they print, and the exit codes that CI reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.flow.worlds import World, caller, tool
from toolcrib import policy_past
from toolcrib.cli.main import app, main
from toolcrib.types import CallerKind, Channel

SHOP = [tool("get_order", "Look up one order."), tool("issue_refund", "Return money to a customer.")]
TOML = """[[tools]]
match = "shop.get_order"
risk = "read"
namespace = "orders"
[[tools]]
match = "shop.issue_refund"
risk = "write"
namespace = "money"
required_scopes = ["money"]
"""
POLICY = """@id("all") permit (principal, action, resource);
@id("scope") forbid (principal, action, resource) unless { principal.scopes.containsAll(resource.required_scopes) };
"""
WIDER = '@id("all") permit (principal, action, resource);\n'
NARROWER = POLICY + '@id("no-orders") forbid (principal, action, resource in Namespace::"orders");\n'


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    one = World(tmp_path, {"shop": SHOP}, toml=TOML, policy=POLICY)
    (tmp_path / "profiles").mkdir()
    for name, scopes in (("clerk", []), ("cashier", ["money"])):
        described = {"subject": name, "tenant": "t", "scopes": scopes}
        (tmp_path / "profiles" / f"{name}.json").write_text(json.dumps(described), encoding="utf-8")
    for name, text in (("wider", WIDER), ("narrower", NARROWER), ("broken", "permit (principal"), ("typo", _TYPO)):
        (tmp_path / f"{name}.cedar").write_text(text, encoding="utf-8")
    yield one
    one.close()


_TYPO = 'permit (principal, action, resource) when { resource.riks == "read" };\n'


def run(world: World, *words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["-C", str(world.folder), "policy", *words])
    assert done.exit_code == code, (done.output, done.exception)
    return json.loads(done.stdout) if "--json" in words else done


def exit_code(world: World, *words: str) -> int:
    """As `main` has it, which turns faults into codes."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as stopped:
        patch.setattr("sys.argv", ["toolcrib", "-C", str(world.folder), "policy", *words])
        main()
    return int(stopped.value.code or 0)


# --- check


def test_check_is_clean_on_a_policy_in_order_and_notes_do_not_fail_it(world: World) -> None:
    answer = run(world, "check", "--json")
    assert [(f["code"], f["note"]) for f in answer["findings"]] == [("open_to_all", True)]
    assert run(world, "check", "--strict", "--json", code=1)["findings"] == answer["findings"]


def test_check_exits_1_with_a_finding_and_shows_it(world: World) -> None:
    done = run(world, "check", "wider.cedar", code=1)
    assert "shop.issue_refund" in done.stdout and "1 finding" in done.output


@pytest.mark.parametrize(
    ("file", "said"),
    [("broken.cedar", "broken.cedar:1"), ("typo.cedar", "riks"), ("missing.cedar", "missing.cedar")],
)
def test_check_exits_2_for_a_policy_that_cannot_be_used(
    world: World, file: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(world, "check", file) == 2
    assert said in capsys.readouterr().err


def test_a_broken_policy_in_force_can_be_checked_and_compared(world: World) -> None:
    (world.folder / "policy.cedar").write_text("permit (principal", encoding="utf-8")
    assert exit_code(world, "check") == 2
    assert run(world, "check", "wider.cedar", "--json", code=1)["findings"]


def test_before_the_first_refresh_a_policy_s_text_is_checked(tmp_path: Path) -> None:
    (tmp_path / "toolcrib.toml").write_text('[crib]\nname = "new"\n', encoding="utf-8")
    done = CliRunner().invoke(app, ["-C", str(tmp_path), "policy", "check", "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    assert [f["text"] for f in json.loads(done.stdout)["findings"] if "no catalog yet" in f["text"]]


# --- test

CASES = """
[[cases]]
name = "a clerk refunds nothing"
caller = "clerk"
action = "discover"
tool = "shop.issue_*"
expect = "forbid"
rule = "scope"

[[cases]]
name = "everybody looks up orders"
caller = "*"
action = "call"
tool = "shop.get_order"
expect = "permit"
"""


def test_policy_tests_pass_and_fail_with_the_policy(world: World) -> None:
    (world.folder / "policy_tests.toml").write_text(CASES, encoding="utf-8")
    answer = run(world, "test", "--json")
    assert (answer["passed"], answer["failed"]) == (2, 0)
    failed = run(world, "test", "--policy", "narrower.cedar", code=1).stdout
    assert "policy_tests.toml:10: everybody looks up orders" in failed
    assert "clerk, shop.get_order: expected permit, got forbid; decided by no-orders" in failed
    cases = run(world, "test", "--policy", "narrower.cedar", "--json", code=1)["cases"]
    assert [(c["passed"], len(c["misses"])) for c in cases] == [(True, 0), (False, 2)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "policy_tests.toml"),
        ("[[cases", "not TOML"),
        ("x = 1" + "0" * 5_000, "not TOML"),
        ("x = " + "[" * 100_000, "not TOML"),
        (CASES + "x = " + "[" * 80 + "]" * 80, "policy_tests.toml:16"),
        (CASES + "expct = 1\n", "policy_tests.toml:16"),
    ],
    ids=["missing", "no-toml", "huge-number", "deep", "nested", "unknown-key"],
)
def test_policy_tests_that_cannot_be_read_exit_2(
    world: World, text: str | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (world.folder / "policy_tests.toml").write_text(text, encoding="utf-8")
    assert exit_code(world, "test") == 2
    assert said in capsys.readouterr().err


# --- diff


def test_a_wider_policy_exits_1_unless_told(world: World) -> None:
    answer = run(world, "diff", "wider.cedar", "--json", code=1)
    assert answer["widens"] is True
    (change,) = answer["changes"]
    assert (change["caller"], change["source"], change["discover_gained"]) == (
        "clerk",
        "profile",
        ["shop.issue_refund"],
    )
    assert [(c["before"], c["after"]) for c in change["call"]] == [("forbid", "permit")]
    assert run(world, "diff", "wider.cedar", "--allow-wider", "--json")["widens"] is True


def test_a_narrower_policy_exits_0_and_old_may_be_named(world: World) -> None:
    assert run(world, "diff", "narrower.cedar", "--json")["widens"] is False
    assert run(world, "diff", "narrower.cedar", "wider.cedar", "--json", code=1)["widens"] is True
    assert run(world, "diff", "policy.cedar", "--json")["changes"] == []


def test_callers_in_the_traces_and_their_calls_are_counted(world: World) -> None:
    zoe = caller(subject="zoe", tenant="u")
    for _ in range(3):
        assert world.call("shop.get_order", caller=zoe, channel=Channel.HTTP).code == "ok"
    world.call("shop.issue_refund", caller=zoe, channel=Channel.HTTP)
    twin = caller(subject="ziv", tenant="u")
    world.crib.select("look up an order", caller=twin, channel=Channel.HTTP)
    assert world.call("shop.get_order", caller=caller(subject="clerk", tenant="t")).code == "ok"
    answer = run(world, "diff", "narrower.cedar", "--json")
    assert (answer["n_requests"], answer["n_callers_seen"], answer["n_unreadable"]) == (6, 1, 0)
    lost = {change["caller"]: (change["source"], change["channels"], change["call"][0]) for change in answer["changes"]}
    assert set(lost) == {"cashier", "clerk", "ziv and 1 more"}
    assert lost["ziv and 1 more"][:2] == ("traces", ["http"])
    counts = {name: (row[2]["calls_by_caller"], row[2]["calls_by_anybody"]) for name, row in lost.items()}
    assert counts == {"cashier": (0, 4), "clerk": (1, 4), "ziv and 1 more": (3, 4)}
    assert "3 (anybody: 4)" in run(world, "diff", "narrower.cedar").stdout


def test_a_policy_that_names_subjects_tells_callers_apart(world: World) -> None:
    for name in ("zoe", "ziv"):
        world.crib.select("look up an order", caller=caller(subject=name, tenant="u"))
    named = POLICY + '@id("not-zoe") forbid (principal == User::"zoe", action, resource);\n'
    (world.folder / "named.cedar").write_text(named, encoding="utf-8")
    answer = run(world, "diff", "named.cedar", "--json")
    assert (answer["n_callers_seen"], [c["caller"] for c in answer["changes"]]) == (2, ["zoe"])


def test_an_agent_is_compared_with_the_rights_of_whom_it_acts_for(world: World) -> None:
    user = caller(subject="zoe", tenant="u")
    agent = caller(subject="bot", kind=CallerKind.AGENT, tenant="u", scopes=["money"], on_behalf_of="zoe")
    world.crib.select("refund", caller=replace(agent, acting_for=user))
    answer = run(world, "diff", "wider.cedar", "--json", code=1)
    gained = {change["caller"]: change["discover_gained"] for change in answer["changes"]}
    assert gained["bot for zoe"] == ["shop.issue_refund"], "alone, the agent could find it all along"


def test_a_rule_on_approvals_or_on_targets_that_widens_exits_1(world: World) -> None:
    forbid = (
        '@id("mine") forbid (principal, action == Action::"call", resource)\n'
        "when { context has target && context.target.tenant != principal.tenant };\n"
    )
    own = '@id("own") permit (principal, action == Action::"approve", resource) when { context.own_request };\n'
    for name, text in (("targets", POLICY + forbid), ("own", POLICY + own)):
        (world.folder / f"{name}.cedar").write_text(text, encoding="utf-8")
    assert run(world, "diff", "targets.cedar", "--json")["widens"] is False
    answer = run(world, "diff", "targets.cedar", "policy.cedar", "--json", code=1)
    told = {(c["caller"], *c["circumstances"], c["call"][0]["after"]) for c in answer["changes"]}
    expected = ("target: another tenant", "target: no tenant", "permit")
    assert {each for each in told if each[0] != "somebody else"} == {("clerk", *expected), ("cashier", *expected)}
    assert (
        "forbid -> permit; target: another tenant" in run(world, "diff", "targets.cedar", "policy.cedar", code=1).stdout
    )
    answer = run(world, "diff", "own.cedar", "--json", code=1)
    gained = [c for c in answer["changes"] if c["circumstances"] == ["requests of its own"]]
    assert [c["approve_gained"] for c in gained] == [["shop.get_order", "shop.issue_refund"]] * 2


def test_what_the_callers_at_hand_cannot_show_exits_1_and_is_told(world: World) -> None:
    eve = POLICY + '@id("eve") permit (principal == User::"eve", action, resource);\n'
    (world.folder / "eve.cedar").write_text(eve, encoding="utf-8")
    done = run(world, "diff", "eve.cedar", code=1)
    assert 'User::"eve"' in done.output and "MIGHT" in done.output
    answer = run(world, "diff", "eve.cedar", "--json", "--allow-wider")
    assert answer["widens"] is True and answer["changes"] == []
    assert all(note["where"].endswith("eve.cedar:3") for note in answer["unseen"])


def test_what_opens_to_a_stranger_alone_exits_1_and_says_to_whom(world: World) -> None:
    held = '@id("all") permit (principal, action, resource) when { principal.tenant == "t" };\n'
    for name, text in (("held", held), ("open", WIDER)):
        (world.folder / f"{name}.cedar").write_text(text, encoding="utf-8")
    answer = run(world, "diff", "held.cedar", "open.cedar", "--json", code=1)
    (change,) = answer["changes"]
    assert (change["caller"], change["source"], change["widens"]) == ("somebody else", "stranger", True)
    assert change["circumstances"] == ["for a caller with another tenant", "for a caller without a tenant"]
    assert change["discover_gained"] == ["shop.get_order", "shop.issue_refund"]
    assert (answer["n_strangers"], answer["unseen"]) == (2, [])
    done = run(world, "diff", "held.cedar", "open.cedar", code=1)
    assert "for a caller without a tenant" in done.stdout
    assert "2 kinds of other callers: somebody may do MORE than before" in done.output
    assert run(world, "diff", "held.cedar", "open.cedar", "--json", "--allow-wider")["widens"] is True
    assert run(world, "diff", "open.cedar", "held.cedar", "--json")["n_strangers"] == 0, "it can only narrow"


def test_a_comparison_for_nobody_exits_2(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    for profile in (world.folder / "profiles").iterdir():
        profile.unlink()
    assert exit_code(world, "diff", "wider.cedar") == 2
    assert "profiles" in capsys.readouterr().err
    world.crib.select("look up an order", caller=caller(subject="zoe", tenant="u"))
    assert exit_code(world, "diff", "wider.cedar") == 1


def test_a_comparison_without_tools_exits_2(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.write("shop", [])
    asyncio.run(world.crib.refresh(accept_empty=True))
    assert exit_code(world, "diff", "wider.cedar") == 2
    assert "no tool is in service" in capsys.readouterr().err


def test_old_requests_and_those_beyond_the_limit_are_not_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        world.crib.select("look up an order", caller=caller(subject="zoe", tenant="u"))
    (newest,) = world.crib.store.traces(limit=1)
    old = replace(newest, trace_id="t-old", at="2020-01-01T00:00:00.000000+00:00")
    world.crib.store.put_trace(old)
    answer = run(world, "diff", "narrower.cedar", "--json")
    assert (answer["n_requests"], answer["complete"]) == (3, True)
    monkeypatch.setattr(policy_past, "MAX_TRACES", 2)
    answer = run(world, "diff", "narrower.cedar", "--json")
    assert (answer["n_requests"], answer["complete"]) == (2, False)


# --- explain


def test_explain_names_the_rule_its_place_and_what_it_looked_at(world: World) -> None:
    answer = run(world, "explain", "--as", "profiles/clerk.json", "shop.issue_refund", "--json")
    assert (answer["effect"], answer["decided_on"]) == ("forbid", "discover")
    (rule,) = answer["policies"]
    assert rule["policy"] == "scope" and rule["where"].endswith("policy.cedar:2")
    assert rule["looked_at"] == {"principal.scopes": [], "resource.required_scopes": ["money"]}
    shown = run(world, "explain", "--as", "profiles/clerk.json", "shop.issue_refund").stdout
    assert 'forbid by "scope"' in shown and "resource.required_scopes = money" in shown
    assert run(world, "explain", "--as", "profiles/cashier.json", "shop.issue_refund", "--json")["effect"] == "permit"


def test_explain_tells_what_routing_rules_out_and_what_is_withheld(world: World) -> None:
    config = world.folder / "toolcrib.toml"
    config.write_text(config.read_text(encoding="utf-8") + 'regions = ["eu"]\n', encoding="utf-8")
    answer = run(world, "explain", "--as", "profiles/cashier.json", "shop.issue_refund", "--json")
    assert (answer["effect"], answer["routing"]["code"]) == ("permit", "region")
    world.write("shop", [*SHOP, tool("new_one", "New.")])
    world.refresh()
    answer = run(world, "explain", "shop.new_one", "--json")
    assert answer["withheld"].startswith("unreviewed") and "effect" not in answer


def test_explaining_a_tool_that_does_not_exist_exits_2(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(world, "explain", "shop.nothing") == 2
    assert "shop.nothing" in capsys.readouterr().err
