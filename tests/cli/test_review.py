"""Reviewing from the command line and at a terminal."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tests.flow.test_review_desk import ATTACK, ORDER, REFUND, runs
from tests.flow.worlds import World, tool
from toolcrib.catalog.lock import read_lock
from toolcrib.cli.main import app
from toolcrib.cli.review_pages import whole
from toolcrib.cli.review_session import ReviewSession, Terminal, real_terminal
from toolcrib.crib import Crib
from toolcrib.errors import ConfigError
from toolcrib.review.signatures import read_key
from toolcrib.store.sqlite import SqliteStore

NASTY = "\x1b[2J\x1b]0;owned\x07 \u202e\u200b\r[bold]x[/bold]"
SIGNERS = ("ann", "bob")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    one = World(tmp_path, {"shop": [ORDER, REFUND]})
    yield one
    one.close()


def run(world: World, *words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["-C", str(world.folder), *words])
    assert done.exit_code == code, (done.output, done.exception)
    return json.loads(done.stdout) if "--json" in words else done


def refused(world: World, *words: str) -> ConfigError:
    done = CliRunner().invoke(app, ["-C", str(world.folder), *words])
    assert isinstance(done.exception, ConfigError), done.output
    return done.exception


def sit(world: World, keys: str, *lines: str) -> str:
    """A sitting with these keys, and these answers to questions; what was printed."""
    pressed, answers, printed = iter(keys), iter(lines), list[str]()
    terminal = Terminal(key=lambda: next(pressed, ""), ask=lambda _q: next(answers, ""), out=printed.append)
    desk = world.crib.review_desk
    ReviewSession(desk=desk, terminal=terminal, reviewer="ann").run(desk.queue())
    return "\n".join(printed)


def decisions(world: World) -> list[tuple[str, str, str]]:
    return [
        (event.action, event.tool_id, event.reason) for event in world.crib.store.reviews() if event.reviewer == "ann"
    ]


def changed(world: World) -> None:
    """Three definitions wait: one worth blocking, one new, one changed."""
    world.write(
        "shop", [{**ORDER, "description": "Look up one order or\u200bder."}, REFUND, ATTACK, tool("new", "New.")]
    )
    world.refresh()


# --- at a terminal


def test_each_key_decides_about_what_stands_on_the_screen(world: World) -> None:
    changed(world)
    shown = sit(world, "?waras", "it is a joke", "hides something")
    assert decisions(world) == [
        ("approve", "shop.add", "it is a joke"),
        ("reject", "shop.get_order", "hides something"),
        ("approve", "shop.new", ""),
    ]
    assert shown.index("[1/3] shop.add") < shown.index("[2/3] shop.get_order") < shown.index("[3/3] shop.new")
    assert "show the whole" in shown
    assert shown.endswith("2 approved, 1 rejected, 0 skipped; 0 still wait")


def test_what_was_found_worth_blocking_is_approved_only_with_a_reason(world: World) -> None:
    changed(world)
    assert "it needs a reason" in sit(world, "aq", "  ")
    assert decisions(world) == []


def test_ending_early_keeps_what_was_decided_and_decides_nothing_else(world: World) -> None:
    changed(world)
    assert sit(world, "sr", "no").endswith("0 approved, 1 rejected, 1 skipped; 2 still wait")
    assert decisions(world) == [("reject", "shop.get_order", "no")]


def test_a_changed_definition_with_something_to_see_in_it_is_approved_only_with_a_reason(world: World) -> None:
    changed(world)
    asked = sit(world, "saaq", "", "a typing error")
    assert "it needs a reason" in asked
    assert decisions(world) == [("approve", "shop.get_order", "a typing error")]


@pytest.mark.parametrize("key", ["q", "Q", "\x03", "\x04", ""], ids=["q", "Q", "ctrl-c", "ctrl-d", "end"])
def test_leaving_decides_nothing(world: World, key: str) -> None:
    changed(world)
    sit(world, key)
    assert decisions(world) == []


def test_a_change_is_shown_by_place_with_its_words_marked_and_what_hides_visible(world: World) -> None:
    changed(world)
    shown = sit(world, "sq")
    page = shown[shown.index("[2/3]") :]
    assert page.index("invisible-characters") < page.index("/description  changed")
    assert "or<U+200B ZERO WIDTH SPACE>der+}" in page
    assert "\u200b" not in shown


def test_a_schema_that_widened_and_a_hint_that_changed_are_told_in_words(world: World) -> None:
    wider = tool("get_order", ORDER["description"], properties={"id": {}, "cc": {"type": "string"}})
    world.write("shop", [{**wider, "annotations": {"readOnlyHint": True}}, REFUND])
    world.refresh()
    shown = sit(world, "q")
    assert "inputSchema: " in shown
    assert "widened" in shown
    assert shown.index("(a model reads it)") < shown.index("(risk and approval rest on it)")
    assert "/inputSchema/properties/cc  added" in shown


def test_without_the_approved_text_the_lock_says_which_fields_changed(world: World) -> None:
    changed(world)
    store = world.crib.store
    assert isinstance(store, SqliteStore)
    approved = read_lock(world.crib.settings.lock).tools["shop.get_order"].digest
    with store._transaction() as db:  # a lock out of version control, on a machine that never had the definition
        db.execute("DELETE FROM definitions WHERE digest = ?", (approved,))
    shown = sit(world, "sq")
    assert "description: another one" in shown
    assert "or<U+200B ZERO WIDTH SPACE>der" in shown


def test_something_that_came_in_meanwhile_is_not_decided(world: World) -> None:
    world.write("shop", [ORDER, REFUND, tool("new", "New.")])
    world.refresh()
    queue = world.crib.review_desk.queue()
    world.write("shop", [ORDER, REFUND, tool("new", "Newer.")])
    world.refresh()
    printed: list[str] = []
    terminal = Terminal(key=lambda: "a", ask=lambda _q: "", out=printed.append)
    ReviewSession(desk=world.crib.review_desk, terminal=terminal, reviewer="ann").run(queue)
    assert decisions(world) == []
    assert "not the definition you were shown" in "\n".join(printed)


def test_leaving_a_question_decides_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def left(*_args: Any, **_more: Any) -> str:
        raise typer.Abort

    monkeypatch.setattr(typer, "prompt", left)
    changed(world)
    printed: list[str] = []
    pressed = iter("r")
    terminal = Terminal(key=lambda: next(pressed, ""), ask=real_terminal().ask, out=printed.append)
    desk = world.crib.review_desk
    ReviewSession(desk=desk, terminal=terminal, reviewer="ann").run(desk.queue())
    assert decisions(world) == []
    assert printed[-1].endswith("3 still wait")


def first_import(tmp_path: Path) -> World:
    one = World(tmp_path, {"shop": [ORDER, REFUND, ATTACK]}, approve=False)
    runs(one, "shop", "1.0.0", pinned=False, advice="npx -y shop-mcp@1.0.0")
    return one


def test_a_new_server_is_summed_up_and_approved_but_for_what_has_findings(tmp_path: Path) -> None:
    one = first_import(tmp_path)
    shown = sit(one, "as")
    assert "server shop  is new" in shown
    assert "npm shop-mcp 1.0.0, started by npx" in shown
    assert "use npx -y shop-mcp@1.0.0" in shown
    assert "without findings: 2 of 3" in shown
    assert [(action, what) for action, what, _ in decisions(one)] == [
        ("pin", "shop"),
        ("approve", "shop.get_order"),
        ("approve", "shop.issue_refund"),
    ]
    assert "[1/1] shop.add" in shown
    one.close()


@pytest.mark.parametrize("keys", ["a", "oa"], ids=["together", "one-by-one"])
def test_a_new_server_that_is_another_one_meanwhile_is_not_pinned(tmp_path: Path, keys: str) -> None:
    one = first_import(tmp_path)
    queue = one.crib.review_desk.queue()
    runs(one, "shop", "6.6.6")
    printed: list[str] = []
    pressed = iter(keys)
    terminal = Terminal(key=lambda: next(pressed, ""), ask=lambda _q: "seen", out=printed.append)
    ReviewSession(desk=one.crib.review_desk, terminal=terminal, reviewer="ann").run(queue)
    assert (decisions(one), one.ids()) == ([], [])
    assert "not what you were shown" in "\n".join(printed)
    one.close()


def test_what_changed_on_a_new_server_is_shown_before_it_is_approved(tmp_path: Path) -> None:
    one = World(tmp_path, {"shop": [ORDER, REFUND]})
    one.write("shop", [ORDER, {**REFUND, "description": "Return money, all of it."}, tool("new", "New.")])
    runs(one, "shop", "1.0.0")
    assert "[1/1] shop.issue_refund  changed" in sit(one, "as")
    assert [what for action, what, _ in decisions(one) if action == "approve"] == ["shop.new"]
    one.close()


@pytest.mark.parametrize(("keys", "n_pages"), [("oq", 1), ("s", 0), ("wq", 0)], ids=["one-by-one", "skip", "whole"])
def test_a_new_server_may_be_looked_at_tool_by_tool_or_left(tmp_path: Path, keys: str, n_pages: int) -> None:
    one = first_import(tmp_path)
    shown = sit(one, keys)
    assert (shown.count("[1/3]"), decisions(one)) == (n_pages, [])
    one.close()


def test_a_changed_server_is_shown_with_what_changed_and_approved_by_a_key(tmp_path: Path) -> None:
    one = World(tmp_path, {"shop": [ORDER, REFUND]}, approve=False)
    runs(one, "shop", "1.0.0")
    one.crib.approve(None, reviewer="tests")
    runs(one, "shop", "1.1.0")
    assert "version: was 1.0.0, is 1.1.0" in sit(one, "s")
    assert one.ids() == []
    sit(one, "a")
    assert (decisions(one), len(one.ids())) == ([("pin", "shop", "")], 2)
    one.close()


def test_nothing_that_a_server_says_reaches_the_terminal_as_it_is(tmp_path: Path) -> None:
    one = World(tmp_path, {"shop": [tool("before", "B.")]}, toml="")
    one.write(
        "shop",
        [
            tool(
                "before",
                f"x{NASTY}",
                properties={f"p{NASTY}": {"type": "string", "enum": [NASTY], "description": NASTY}},
                title=NASTY,
                annotations={"title": NASTY},
            ),
            tool("new", NASTY, properties={f"q{NASTY}": {"default": NASTY, "description": NASTY}}, **{f"k{NASTY}": 1}),
            {"name": f"odd\n{NASTY}", "description": NASTY, "inputSchema": {"type": "object"}},
        ],
    )
    runs(one, "shop", f"1{NASTY}", advice=NASTY, pinned=False, note=NASTY, arguments=(NASTY,), origin=NASTY)
    shown = sit(one, "wswswsw")
    done = CliRunner().invoke(app, ["-C", str(one.folder), "review"])
    whole = CliRunner().invoke(app, ["-C", str(one.folder), "review", "shop.*"])
    for text in (shown, done.output, whole.output):
        assert [c for c in "\x07\r\u202e\u200b" if c in text] == []
        assert "\x1b[2J" not in text
        assert "\x1b]" not in text
    assert "\x1b" not in done.output + whole.output
    one.close()


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a POSIX thing")
def test_in_a_real_terminal_one_key_is_enough(world: World) -> None:
    from tests.cli.terminal import drive

    world.write("shop", [ORDER, REFUND, ATTACK, tool("new", "New.")])
    world.refresh()
    words = [sys.executable, "-m", "toolcrib.cli", "-C", str(world.folder), "review", "--by", "ann"]
    shown, code = drive(words, [("[q]", "r"), ("why", "bad\n"), ("[q]", "a")])
    assert code == 0, shown
    assert decisions(world) == [("reject", "shop.add", "bad"), ("approve", "shop.new", "")]
    listed, code = drive([*words, "--list"], [])
    assert (code, "rejected before, and not waiting: shop.add" in listed) == (0, True)


# --- approving on the command line


def test_approving_all_leaves_out_what_has_findings_worth_blocking_and_says_so(world: World) -> None:
    changed(world)
    done = run(world, "approve", "--all", "--json", code=1)
    assert [t["tool_id"] for t in done["approved"]] == ["shop.new"]
    assert [t["tool_id"] for t in done["left_out"]] == ["shop.add", "shop.get_order"]
    assert done["left_out"][1]["rules"] == ["invisible-characters"]
    assert "left out shop.add" in run(world, "approve", "--all", code=1).stderr
    named = run(world, "approve", "shop.add", "shop.get_order", "--by", "ann", "--json")
    assert [t["tool_id"] for t in named["approved"]] == ["shop.add", "shop.get_order"]
    assert run(world, "review", "--json")["tools"] == []
    assert "nothing of it waits" in run(world, "approve", "--all").stderr


def test_a_changed_definition_with_another_tools_description_is_approved_by_name_alone(world: World) -> None:
    world.write(
        "shop",
        [
            {**ORDER, "description": REFUND["description"]},
            {**REFUND, "description": ORDER["description"]},
        ],
    )
    world.refresh()
    done = run(world, "approve", "--all", "--json", code=1)
    assert (done["approved"], [t["rules"] for t in done["left_out"]]) == ([], [["swapped-description"]] * 2)


def test_what_no_approval_can_bring_into_service_stands_apart(world: World) -> None:
    world.write("shop", [ORDER, REFUND, tool("twice", "One."), tool("twice", "Two.")])
    world.refresh()
    done = run(world, "review", "--list")
    assert "twice" not in done.stdout
    assert "not fit to be served until its server changes it: shop.twice" in done.stderr
    checks = run(world, "doctor", "--json")["checks"]
    assert any("not fit to be served" in check["told"] for check in checks)


def test_the_list_says_what_changed_and_the_gravest_stands_first(world: World) -> None:
    exchanged = [
        {**ORDER, "description": REFUND["description"]},
        {**REFUND, "description": ORDER["description"]},
    ]
    world.write("shop", [tool("aaa", "Adds."), *exchanged])
    world.refresh()
    assert [t["tool_id"] for t in run(world, "review", "--json", code=1)["tools"]] == [
        "shop.get_order",
        "shop.issue_refund",
        "shop.aaa",
    ]
    told = run(world, "review", "--list", code=1).stdout
    assert "has exchanged its description with shop.issue_refund; changed: description" in " ".join(told.split())


def test_a_changed_definition_without_findings_is_approved_with_all(world: World) -> None:
    world.write("shop", [{**ORDER, "description": "Look up an order."}, REFUND])
    world.refresh()
    assert [t["tool_id"] for t in run(world, "approve", "--all", "--json")["approved"]] == ["shop.get_order"]


def test_with_findings_takes_everything(world: World) -> None:
    changed(world)
    done = run(world, "approve", "--all", "--with-findings", "--json")
    assert (len(done["approved"]), done["left_out"]) == (3, [])


def test_a_changed_server_is_approved_by_its_name_and_not_with_all(tmp_path: Path) -> None:
    one = World(tmp_path, {"shop": [ORDER], "hub": [REFUND]}, approve=False)
    runs(one, "shop", "1.0.0")
    one.crib.approve(None, reviewer="tests")
    one.write("shop", [ORDER, tool("new", "New.")])
    runs(one, "shop", "1.1.0")
    shown = run(one, "review", "--json", code=1)
    assert [(s["server_id"], s["kind"], s["changes"]) for s in shown["servers"]] == [
        ("shop", "provenance", [{"field": "version", "was": "1.0.0", "now": "1.1.0"}])
    ]
    assert "server shop is not what was approved" in run(one, "approve", "--all").stderr
    assert one.ids() == ["hub.issue_refund"]
    done = run(one, "approve", "--server", "shop", "--json")
    assert done["servers"] == [{"server_id": "shop", "is": "npm shop-mcp 1.1.0, started by npx"}]
    assert one.ids() == ["hub.issue_refund", "shop.get_order", "shop.new"]
    one.close()


def test_approving_a_server_takes_its_own_tools_alone(tmp_path: Path) -> None:
    one = World(tmp_path, {"shop": [ORDER, ATTACK], "hub": [REFUND]}, approve=False)
    done = run(one, "approve", "--server", "shop", "--json", code=1)
    assert [t["tool_id"] for t in done["approved"]] == ["shop.get_order"]
    assert [t["tool_id"] for t in done["left_out"]] == ["shop.add"]
    assert "no server" in str(refused(one, "approve", "--server", "nowhere"))
    one.close()


@pytest.mark.parametrize("words", [[], ["shop.x", "--all"], ["--all", "--server", "shop"]], ids=["none", "two", "both"])
def test_what_is_approved_is_said_in_one_way(world: World, words: list[str]) -> None:
    refused(world, "approve", *words)


# --- signing


def keys(world: World, needed: int) -> None:
    rows = [run(world, "review", "key", name).stdout for name in SIGNERS]
    config = world.folder / "toolcrib.toml"
    text = f"{config.read_text(encoding='utf-8')}\n[review]\nrequire_signers = {needed}\n{''.join(rows)}"
    config.write_text(text, encoding="utf-8")


def test_a_key_is_made_once_for_its_owner_alone_and_printed_as_a_row(world: World) -> None:
    row = run(world, "review", "key", "ann").stdout
    path = world.folder / "ann.pem"
    read_key(path)
    assert row.startswith('[[review.signers]]\nname = "ann"\npublic_key = "')
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    refused(world, "review", "key", "ann")
    assert path.read_bytes() == before
    assert "BEGIN" not in row
    refused(world, "review", "key", "an n")
    told = run(world, "review", "key", "bob", "--out", "keys/bob.pem", "--json")
    assert Path(told["file"]) == world.folder / "keys" / "bob.pem"


def test_two_signers_bring_a_tool_into_service_and_one_twice_does_not(world: World) -> None:
    keys(world, 2)
    assert world.ids() == []
    first = run(world, "approve", "--all", "--signer", "ann.pem", "--json")
    assert {t["tool_id"] for t in first["unsigned"]} == {"shop.get_order", "shop.issue_refund"}
    again = run(world, "approve", "--all", "--signer", "ann.pem", "--json")
    assert (again["approved"], len(again["signed_already"])) == ([], 2)
    assert "ann has signed already" in run(world, "approve", "shop.get_order", "--signer", "ann.pem").stderr
    run(world, "approve", "--all", code=1)
    assert world.ids() == []
    run(world, "approve", "--all", "--signer", "bob.pem")
    assert len(world.ids()) == 2
    logged = run(world, "review", "log", "--json")["events"]
    assert {(e["reviewer"], e["signer"]) for e in logged if e["signer"]} == {("ann", "ann"), ("bob", "bob")}
    checked = run(world, "review", "log", "--verify", "--json")
    assert (checked["bad_signatures"], checked["n_signatures_checked"]) == ({}, 4)
    assert "4 signatures checked, 0 bad" in run(world, "review", "log", "--verify").stderr


def test_a_signer_decides_in_its_own_name(world: World) -> None:
    keys(world, 0)
    refused(world, "approve", "--all", "--signer", "ann.pem", "--by", "bob")
    (world.folder / "eve.pem").write_bytes((world.folder / "ann.pem").read_bytes().replace(b"PRIVATE", b"PUBLIC"))
    refused(world, "approve", "--all", "--signer", "eve.pem")
    refused(world, "approve", "--all", "--signer", "none.pem")


# --- the log


def test_the_log_tells_who_decided_what_newest_last_and_can_be_narrowed(world: World) -> None:
    run(world, "reject", "shop.get_order", "--by", "ann", "--reason", "no more")
    told = run(world, "review", "log", "--tool", "shop.get_order", "--json")
    assert [(e["action"], e["reviewer"], e["reason"]) for e in told["events"]] == [
        ("approve", "tests", ""),
        ("reject", "ann", "no more"),
    ]
    assert told["chain"]["is_sound"]
    assert "no more" in run(world, "review", "log").stdout


def test_a_log_that_was_changed_is_told_with_exit_1(world: World) -> None:
    head = run(world, "review", "log", "--json")["chain"]["head"]
    run(world, "review", "log", "--holds", head[:20])
    run(world, "review", "log", "--holds", "f00dfeed", code=1)
    refused(world, "review", "log", "--holds", head[:4])
    store = world.crib.store
    assert isinstance(store, SqliteStore)
    with store._transaction() as db:  # as somebody with the file and no respect for triggers
        db.execute("DROP TRIGGER reviews_are_final")
        db.execute("UPDATE reviews SET reviewer = 'eve' WHERE n = 1")
    found = run(world, "review", "log", "--json", code=1)["chain"]
    assert (found["is_sound"], found["broken_at"]) == (False, 1)
    assert "NOT WHAT WAS WRITTEN" in run(world, "review", "log", code=1).stderr


# --- for programs


def test_review_for_programs_has_levels_changes_and_servers(world: World) -> None:
    changed(world)
    told = run(world, "review", "--json", code=1)
    assert set(told) == {"tools", "servers", "notes"}
    items = {t["tool_id"]: t for t in told["tools"]}
    assert items["shop.add"]["level"] == "block"
    assert {f["level"] for f in items["shop.add"]["findings"]} >= {"block"}
    [change] = items["shop.get_order"]["changes"]
    assert (change["field"], change["grade"]) == ("description", "model_reads")
    assert [place["pointer"] for place in change["places"]] == ["/description"]
    assert items["shop.new"]["changes"] == []


def test_a_tool_may_be_named_with_its_digest(world: World) -> None:
    changed(world)
    digest = next(item.tool.digest for item in world.crib.review() if item.tool.tool_id == "shop.new")
    [told] = run(world, "review", f"shop.new@{digest[:20]}", "--json", code=1)["tools"]
    assert told["tool_id"] == "shop.new"


def test_the_whole_of_a_definition_has_no_line_that_a_text_made() -> None:
    lines = whole({"description": "Adds.\u2028  safe: yes\u0085\x1c\x0bover"})
    assert (len(lines), lines[0], lines[2]) == (3, "{", "}")
    assert "<U+2028 LINE SEPARATOR>" in lines[1]


def test_naming_a_tool_that_its_server_holds_back_says_what_does(tmp_path: Path) -> None:
    one = World(tmp_path, {"shop": [ORDER]}, approve=False)
    runs(one, "shop", "1.0.0")
    one.crib.approve(None, reviewer="tests")
    runs(one, "shop", "1.1.0")
    done = CliRunner().invoke(app, ["-C", str(one.folder), "review", "shop.get_order"])
    assert "version was 1.0.0" in str(done.exception)
    one.close()


def test_the_crib_opens_for_everybody_after_a_review(world: World) -> None:
    changed(world)
    sit(world, "ssa")
    with Crib.open(world.folder) as crib:
        assert [t.tool_id for t in crib.tools()] == ["shop.issue_refund", "shop.new"]
