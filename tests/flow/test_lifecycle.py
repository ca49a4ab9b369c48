"""Tools that are renamed, deprecated and retired: what callers who may know of them are told, and all others not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.flow.worlds import Worlds, caller, tool
from toolcrib.cli.main import app
from toolcrib.crib import Crib
from toolcrib.history import History, history_of
from toolcrib.server import answers
from toolcrib.server.surface import SurfaceKind, mcp_name, surface_of
from toolcrib.types import CallerKind, Channel, Code

READ = '[[tools]]\nmatch = "*"\nrisk = "read"\n'
NEW, OLD = "hub.create_issue", "hub.new_issue"
RENAMED = READ + f'[[tools]]\nmatch = "{NEW}"\naliases = ["{OLD}"]\nversion = "2"\n'
RETIRED = READ + f'[[tools]]\nmatch = "{OLD}"\nstatus = "retired"\nreplaced_by = "{NEW}"\n'
DEPRECATED = RETIRED.replace("retired", "deprecated")
SECRET = '[[tools]]\nmatch = "{}"\nrequired_scopes = ["issues"]\n'
ANN, EVE = caller(scopes=["issues"]), caller(subject="eve")
CREATE = tool("create_issue", "Open a ticket for a fault that somebody reports.")
BEFORE = tool("new_issue", "Open a ticket for a fault that somebody reports, as before.")
OTHER = tool("list_branches", "List the branches of a repository.")


def asked(crib: Crib, name: str, who: Any) -> Any:
    return asyncio.run(crib.call(name, {}, caller=who))


def same_but_for_the_trace(crib: Crib, name: str, who: Any) -> str:
    return json.dumps({**asked(crib, name, who).to_dict(), "trace_id": ""})


def history(crib: Crib, tool_id: str) -> History:
    return history_of(tool_id, store=crib.store, snapshot=crib.snapshot(), rules=crib.settings.tools)


# --- renamed


def test_a_call_by_an_old_name_reaches_the_tool_and_says_its_new_one(make_world: Worlds) -> None:
    one = make_world({"hub": [CREATE, OTHER]}, toml=RENAMED)
    done = asked(one.crib, OLD, ANN)
    assert done.ok
    assert done.result.notes == (f"{OLD} is called {NEW} now.",)
    assert one.servers["hub"].calls == [("create_issue", {})]
    gate = next(r for r in one.crib.trace(done.trace_id).records if r.stage == "gate").operator_view
    assert (gate["tool_id"], gate["called_as"]) == (NEW, OLD)
    assert one.crib.explain(done.trace_id, tool_id=OLD).code == "carried_out"


def test_an_old_name_is_judged_under_the_new_one(make_world: Worlds) -> None:
    one = make_world({"hub": [CREATE, OTHER]}, toml=RENAMED + SECRET.format(NEW))
    assert asked(one.crib, OLD, ANN).ok
    assert same_but_for_the_trace(one.crib, OLD, EVE) == same_but_for_the_trace(one.crib, "hub.nothing", EVE)
    assert one.servers["hub"].calls == [("create_issue", {})]


def test_an_old_name_finds_and_describes_the_tool(make_world: Worlds) -> None:
    one = make_world({"hub": [CREATE, OTHER]}, toml=RENAMED)
    for words in (OLD, "new_issue", mcp_name(OLD)):
        assert [s.tool.tool_id for s in one.crib.select(words, caller=ANN).tools][:1] == [NEW], words
    surface = surface_of(one.crib.view(ANN, Channel.STDIO), SurfaceKind.SEARCH)
    for name in (OLD, mcp_name(OLD)):
        assert surface.asked_id(name) == OLD
        (told,) = answers.described([name], surface)["structuredContent"]["tools"]
        assert told["tool_id"] == NEW
        assert told["version"] == "2"
        assert told["message"] == f"{name} is called {mcp_name(NEW)} now."


def test_a_tool_that_the_caller_may_know_keeps_its_name_from_an_old_one(make_world: Worlds) -> None:
    one = make_world({"hub": [CREATE, BEFORE]}, toml=RENAMED)
    done = asked(one.crib, OLD, ANN)
    assert done.ok
    assert not done.result.notes
    assert one.servers["hub"].calls == [("new_issue", {})]
    assert [s.tool.tool_id for s in one.crib.select(OLD, caller=ANN).tools][:1] == [OLD]


def test_a_hidden_tool_of_the_old_name_changes_nothing_for_a_stranger(make_world: Worlds) -> None:
    toml = RENAMED + SECRET.format(OLD)
    with_it, without = make_world({"hub": [CREATE, BEFORE]}, toml=toml), make_world({"hub": [CREATE]}, toml=toml)
    told = same_but_for_the_trace(with_it.crib, OLD, EVE)
    assert told == same_but_for_the_trace(without.crib, OLD, EVE)
    assert with_it.servers["hub"].calls == [("create_issue", {})]


# --- deprecated


def test_a_replacement_stands_before_what_it_replaces_found_or_not(make_world: Worlds) -> None:
    far = tool("create_issue", "Quite another wording.")
    one = make_world({"hub": [far, BEFORE]}, toml=DEPRECATED)
    offer = one.crib.select("open a ticket for a fault that somebody reports, as before", caller=ANN)
    assert [s.tool.tool_id for s in offer.tools] == [NEW, OLD]
    assert [s.note for s in offer.tools] == ["", f"deprecated; use {NEW}"]
    assert offer.to_dict()["tools"][1]["note"] == f"deprecated; use {NEW}"


def test_a_replacement_that_the_caller_may_not_know_is_not_named(make_world: Worlds) -> None:
    one = make_world({"hub": [CREATE, BEFORE]}, toml=DEPRECATED + SECRET.format(NEW))
    offer = one.crib.select("open a ticket for a fault that somebody reports", caller=EVE)
    assert [(s.tool.tool_id, s.note) for s in offer.tools] == [(OLD, "deprecated")]
    surface = surface_of(one.crib.view(EVE, Channel.STDIO), SurfaceKind.SEARCH)
    (told,) = answers.described([OLD], surface)["structuredContent"]["tools"]
    assert told["note"] == "deprecated"


# --- retired


@pytest.mark.parametrize("name", [OLD, mcp_name(OLD)])
def test_a_retired_tool_leaves_a_word_for_those_who_might_have_known_it(make_world: Worlds, name: str) -> None:
    one = make_world({"hub": [CREATE, BEFORE]}, toml=RETIRED)
    done = asked(one.crib, name, ANN)
    assert (done.code, done.message) == (Code.NOT_AVAILABLE, f"This tool is retired; use {NEW}.")
    told = answers.called(done)["structuredContent"]
    assert told["message"] == f"This tool is retired; use {NEW}."
    assert one.servers["hub"].calls == []
    assert OLD not in [t.tool_id for t in one.crib.tools(ANN)]
    assert OLD not in [s.tool.tool_id for s in one.crib.select("open a ticket as before", caller=ANN).tools]
    assert one.crib.explain(done.trace_id, tool_id=OLD).code == "retired"


@pytest.mark.parametrize("more", [SECRET.format(OLD), '[[tools]]\nmatch = "hub.new_issue"\nenabled = false\n'])
def test_a_retired_tool_is_an_unknown_name_to_everybody_else(make_world: Worlds, more: str) -> None:
    one = make_world({"hub": [CREATE, BEFORE]}, toml=RETIRED + more)
    without = make_world({"hub": [CREATE]}, toml=RETIRED + more)
    for name in (OLD, mcp_name(OLD)):
        told = same_but_for_the_trace(one.crib, name, EVE)
        assert told == same_but_for_the_trace(one.crib, "hub.nothing", EVE)
        assert told == same_but_for_the_trace(without.crib, name, EVE)


def test_a_retired_tool_names_no_replacement_that_the_caller_may_not_use(make_world: Worlds) -> None:
    one = make_world({"hub": [CREATE, BEFORE]}, toml=RETIRED + SECRET.format(NEW))
    assert asked(one.crib, OLD, EVE).message == "This tool is retired."
    assert asked(one.crib, OLD, ANN).message == f"This tool is retired; use {NEW}."


# --- looking back


@pytest.mark.parametrize("then", [DEPRECATED, RETIRED])
def test_an_old_trace_replays_after_a_tool_is_deprecated_or_retired(make_world: Worlds, then: str) -> None:
    one = make_world({"hub": [CREATE, BEFORE]}, toml=READ)
    offer = one.crib.select("open a ticket for a fault that somebody reports, as before", caller=ANN)
    assert offer.tools[0].tool.tool_id == OLD
    path = one.folder / "toolcrib.toml"
    path.write_text(path.read_text(encoding="utf-8").replace(READ, then), encoding="utf-8")
    assert one.crib.replay(offer.trace_id).same
    present = one.crib.replay(offer.trace_id, against="present")
    assert OLD in {change.tool_id for change in present.changes}


def test_history_tells_each_version_of_a_tool_and_of_its_old_name(make_world: Worlds) -> None:
    one = make_world({"hub": [BEFORE]}, toml=RENAMED)
    one.write("hub", [CREATE])
    asyncio.run(one.crib.refresh())
    waiting = history(one.crib, NEW)
    assert [v.standing for v in waiting.versions] == ["", "unreviewed"]
    one.crib.approve([NEW], reviewer="bo", reason="renamed")
    known = history(one.crib, OLD)
    assert (known.tool_id, [v.tool_id for v in known.versions]) == (NEW, [OLD, NEW])
    old, new = known.versions
    assert (old.standing, old.changed) == ("", None)
    assert {change.field for change in new.changed or ()} == {"name", "description"}
    assert [(e.action, e.reviewer, e.reason) for e in new.decisions] == [("approve", "bo", "renamed")]
    assert new.standing == "in service"
    assert known.to_dict()["aliases"] == [OLD]


def test_the_history_of_a_name_that_was_never_there_is_empty(make_world: Worlds) -> None:
    one = make_world({"hub": [CREATE]})
    assert history(one.crib, "hub.nothing").versions == ()


def test_the_command_shows_a_history_and_exits_with_1_for_an_unknown_name(make_world: Worlds) -> None:
    one = make_world({"hub": [CREATE]}, toml=RENAMED)
    line = ["-C", str(one.folder), "tools", "--history"]
    shown = CliRunner().invoke(app, [*line, OLD])
    assert shown.exit_code == 0
    assert "in service" in shown.stdout
    told = json.loads(CliRunner().invoke(app, [*line, NEW, "--json"]).stdout)
    assert (told["tool_id"], told["version"], told["aliases"]) == (NEW, "2", [OLD])
    assert [version["standing"] for version in told["versions"]] == ["in service"]
    assert CliRunner().invoke(app, [*line, "hub.nothing"]).exit_code == 1


def test_a_rejected_definition_and_what_came_after_one_that_is_not_kept_are_compared_all_the_same(
    make_world: Worlds,
) -> None:
    one = make_world({"hub": [tool("list", "First.")]})
    for text, reject in (("Refused.", True), ("Nobody looked.", False), ("Now.", False)):
        one.write("hub", [tool("list", text)])
        one.refresh()
        if reject:
            one.crib.reject(["hub.list"], reviewer="ann", reason="no")
    told = [[c.field for c in v.changed or ()] for v in history(one.crib, "hub.list").versions]
    assert told == [[], ["description"], [], ["description"]]


def test_a_deprecated_tool_says_so_at_the_terminal(make_world: Worlds) -> None:
    one = make_world({"hub": [CREATE, BEFORE]}, toml=f"{READ}{DEPRECATED}")
    for words in (["select", "open a ticket for a fault that somebody reports, as before"], ["tools"]):
        shown = " ".join(CliRunner().invoke(app, ["-C", str(one.folder), *words]).stdout.split())
        assert "[deprecated" in shown


def test_a_trace_is_explained_by_the_names_that_a_tool_had_before_and_after(make_world: Worlds) -> None:
    one = make_world({"hub": [BEFORE]}, toml=RENAMED)
    early = one.crib.select("open a ticket for a fault that somebody reports, as before", caller=ANN)
    one.write("hub", [CREATE])
    asyncio.run(one.crib.refresh())
    one.crib.approve([NEW], reviewer="bo")
    late = one.crib.select("open a ticket for a fault that somebody reports", caller=ANN)
    told = [one.crib.explain(trace, tool_id=name) for trace in (early.trace_id, late.trace_id) for name in (OLD, NEW)]
    assert [found.tool_id for found in told] == [OLD, OLD, NEW, NEW]
    assert {found.code for found in told} == {told[0].code}
    assert "not_in_catalog" not in {found.code for found in told}


@pytest.mark.parametrize("hidden_first", [True, False])
def test_i01_a_retired_tool_that_is_hidden_stands_in_no_other_retired_tools_place(
    make_world: Worlds, hidden_first: bool
) -> None:
    hidden, gone = tool("secret_issue", "Hidden."), BEFORE
    row = f'[[tools]]\nmatch = "hub.secret_issue"\nstatus = "retired"\naliases = ["{OLD}"]\n'
    toml = RETIRED + row + SECRET.format("hub.secret_issue")
    listed = [hidden, gone, CREATE] if hidden_first else [CREATE, gone, hidden]
    one = make_world({"hub": listed}, toml=toml)
    without = make_world({"hub": [t for t in listed if t is not hidden]}, toml=toml)
    for name in (OLD, mcp_name(OLD), "hub.secret_issue"):
        told = same_but_for_the_trace(one.crib, name, EVE)
        assert told == same_but_for_the_trace(without.crib, name, EVE)
    assert asked(one.crib, OLD, EVE).message == f"This tool is retired; use {NEW}."


def test_what_an_agent_calls_for_one_person_explains_nothing_about_another(make_world: Worlds) -> None:
    one = make_world({"hub": [CREATE]}, toml=READ)
    for_ann, for_bob = (
        caller(subject="bot", kind=CallerKind.AGENT, on_behalf_of=name, acting_for=caller(subject=name))
        for name in ("ann", "bob")
    )
    offer = one.crib.select("open a ticket for a fault that somebody reports", caller=for_ann)
    assert asked(one.crib, NEW, for_bob).ok
    assert one.crib.explain(offer.trace_id, tool_id=NEW).code == "not_chosen"
    assert asked(one.crib, NEW, for_ann).ok
    assert one.crib.explain(offer.trace_id, tool_id=NEW).code == "carried_out"
