"""A select is made again from its trace alone, with the health of tools as it was then (I6)."""

from __future__ import annotations

import sqlite3

import pytest

from tests.flow.worlds import Worlds, caller, tool
from toolcrib.errors import TraceError
from toolcrib.types import Caller, CallerKind, Code, JsonObject, Stage, ToolResult

TEXT = {"type": "string"}
TWINS = {
    "a": [tool("find_invoice", "Find an invoice by its number.", properties={"number": TEXT})],
    "b": [tool("find_invoice", "Find an invoice by its number.", properties={"number": TEXT})],
}
READ = '[[tools]]\nmatch = "*"\nrisk = "read"\n'
HEALTH = "[gate]\nretry_reads = false\n[gate.circuit]\nfailures = 0\n[routing.health]\nmin_calls = 1\n"
TASK = "find an invoice by its number"
BOSS = caller(subject="boss", tenant="acme", roles=["lead"])
AGENT = caller(subject="bot", tenant="acme", kind=CallerKind.AGENT, on_behalf_of="boss", acting_for=BOSS)


async def a_fails(_name: str, _arguments: JsonObject) -> ToolResult:
    return ToolResult(code=Code.UNAVAILABLE, message="down", reached_server=True)


@pytest.mark.parametrize("who", [BOSS, AGENT], ids=["a user", "an agent for a user"])
def test_the_same_answer_comes_of_the_trace_whatever_happened_to_the_tools_since(
    make_world: Worlds, who: Caller
) -> None:
    one = make_world(TWINS, toml=READ + HEALTH, handler=a_fails)
    before = one.crib.select(TASK, caller=who)
    assert [found.tool.tool_id for found in before.tools] == ["a.find_invoice", "b.find_invoice"]
    assert one.call("a.find_invoice", {"number": "1"}).code is Code.UNAVAILABLE
    after = one.crib.select(TASK, caller=who)
    assert [found.tool.tool_id for found in after.tools] == ["b.find_invoice", "a.find_invoice"]
    for offer in (before, after):
        replayed = one.crib.replay(offer.trace_id)
        assert replayed.same, replayed.differs


SERVED = {
    "a": [tool("find_invoice", "Find an invoice by its number.", properties={"number": TEXT})],
    "b": [tool("find_invoice", "Find an invoice by its number.", properties={"number": TEXT})],
    "c": [tool("send_mail", "Send a mail to a customer.", properties={"to": TEXT})],
}


def test_what_the_answer_rested_on_and_is_another_by_now_is_named(make_world: Worlds) -> None:
    one = make_world(TWINS, toml=READ, policy="permit (principal, action, resource);")
    trace_id = one.crib.select(TASK).trace_id
    (one.folder / "policy.cedar").write_text('permit (principal, action, resource == Tool::"a.find_invoice");')
    found = one.crib.replay(trace_id)
    assert (found.same, found.differs, found.others) == (True, (), ("policy",))
    config = one.folder / "toolcrib.toml"
    rules = '[retrieval]\ntop_k = 51\n[[routing.equivalent]]\ntools = ["b.find_invoice", "a.find_invoice"]\n'
    rules += "[[routing.risk_ceilings]]\nmax_risk = 'read'\n[[routing.residency]]\ntenants = ['x']\nwithin = ['eu']\n"
    config.write_text(config.read_text(encoding="utf-8") + rules, encoding="utf-8")
    found = one.crib.replay(trace_id)
    assert (found.same, found.others) == (True, ("policy", "options"))
    one.crib.reject(["b.find_invoice"], reviewer="tests")
    found = one.crib.replay(trace_id)
    assert (found.same, found.others) == (True, ("catalog", "policy", "index", "options"))
    later = one.crib.select(TASK).trace_id  # and the newer rules, from the store alone, once they are gone
    config.write_text(config.read_text(encoding="utf-8").replace(rules, ""), encoding="utf-8")
    found = one.crib.replay(later)
    assert (found.same, found.others) == (True, ("options",))


def test_a_changed_definition_and_changed_rules_for_it_are_replayed_as_they_were(make_world: Worlds) -> None:
    one = make_world(SERVED, toml=READ)
    trace_id = one.crib.select(TASK).trace_id
    one.write("a", [tool("find_invoice", "Look one up.", properties={"number": TEXT})])
    one.refresh()
    one.crib.approve(None, reviewer="tests")
    config = one.folder / "toolcrib.toml"
    config.write_text(
        config.read_text(encoding="utf-8") + '[[tools]]\nmatch = "b.*"\nkeywords = ["bill"]\n', encoding="utf-8"
    )
    assert one.crib.replay(trace_id).same
    now = one.crib.replay(trace_id, against="present")
    assert not now.same
    assert [(c.tool_id, c.change) for c in now.changes if c.change == "redefined"] == [("a.find_invoice", "redefined")]
    assert now.stage is Stage.REGISTRY


def test_what_is_not_kept_is_named_and_nothing_is_guessed(make_world: Worlds) -> None:
    one = make_world(TWINS, toml=READ, policy="permit (principal, action, resource);")
    trace_id = one.crib.select(TASK).trace_id
    (one.folder / "policy.cedar").write_text("// an older text\npermit (principal, action, resource);")
    other = sqlite3.connect(one.folder / ".toolcrib" / "store.db")
    other.execute("DELETE FROM versions WHERE kind = 'policy'")
    other.commit()
    other.close()
    found = one.crib.replay(trace_id)
    assert (found.same, found.compared, found.differs) == (False, False, ("policy",))
    assert one.crib.replay(trace_id, against="present").same


@pytest.mark.parametrize(
    ("change", "stage", "code"),
    [
        ("policy", Stage.ELIGIBILITY, "policy does not let this caller know of it"),
        ("reject", Stage.REGISTRY, "a reviewer rejected this definition"),
        ("rule", Stage.ROUTING, "is for elsewhere"),
    ],
)
def test_the_stage_that_takes_a_tool_away_is_named(make_world: Worlds, change: str, stage: Stage, code: str) -> None:
    one = make_world(SERVED, toml=READ, policy="permit (principal, action, resource);")
    trace_id = one.crib.select(TASK).trace_id
    if change == "policy":
        text = 'permit (principal, action, resource) unless { resource == Tool::"b.find_invoice" };'
        (one.folder / "policy.cedar").write_text(text)
    elif change == "reject":
        one.crib.reject(["b.find_invoice"], reviewer="tests")
    else:
        config = one.folder / "toolcrib.toml"
        more = '[[tools]]\nmatch = "b.*"\nenvironments = ["elsewhere"]\n'
        config.write_text(config.read_text(encoding="utf-8") + more, encoding="utf-8")
    found = one.crib.replay(trace_id, against="present")
    lost = [one for one in found.changes if one.change == "lost"]
    assert [(c.tool_id, c.then, c.now, c.stage) for c in lost] == [("b.find_invoice", 2, 0, stage)]
    assert code in lost[0].why
    assert (found.same, found.stage) == (False, stage)
    assert found.tokens[1] < found.tokens[0]


def test_a_tool_that_is_new_in_an_offer_says_what_kept_it_out_before(make_world: Worlds) -> None:
    shut = 'permit (principal, action, resource) unless { resource == Tool::"b.find_invoice" };'
    one = make_world(SERVED, toml=READ, policy=shut)
    trace_id = one.crib.select(TASK).trace_id
    (one.folder / "policy.cedar").write_text("permit (principal, action, resource);")
    found = one.crib.replay(trace_id, against="present")
    gained = [one for one in found.changes if one.change == "gained"]
    assert [(c.tool_id, c.stage) for c in gained] == [("b.find_invoice", Stage.ELIGIBILITY)]
    assert gained[0].why == "then: policy does not let this caller know of it"


def test_the_selects_of_some_time_are_summed_up(make_world: Worlds) -> None:
    one = make_world(SERVED, toml=READ, policy="permit (principal, action, resource);")
    one.crib.select("send a mail to a customer", limit=1)
    for _ in range(2):
        one.crib.select(TASK)
    one.call("a.find_invoice", {"number": "1"})
    (one.folder / "policy.cedar").write_text("oops")
    assert one.crib.select(TASK).outcome == "selected"  # the last good policy stays in force
    text = 'permit (principal, action, resource) unless { resource == Tool::"a.find_invoice" };'
    (one.folder / "policy.cedar").write_text(text)
    recorded = one.crib.replay_since("2000")
    assert (recorded.n_same, recorded.n_different, recorded.n_not_kept, recorded.n_unanswered) == (4, 0, 0, 0)
    now = one.crib.replay_since("2000", against="present")
    assert (now.n_same, now.n_different) == (1, 3)
    assert (now.lost, now.stages) == ({"a.find_invoice": 3}, {"eligibility": 3})
    assert now.tokens[1] < now.tokens[0]
    assert [one.trace_id for one in one.crib.replay_since("2000", limit=1, against="present").different] == [
        now.different[0].trace_id
    ]


def test_a_call_cannot_be_replayed(make_world: Worlds) -> None:
    one = make_world(TWINS, toml=READ)
    with pytest.raises(TraceError):
        one.crib.replay(one.call("a.find_invoice", {"number": "1"}).trace_id)
