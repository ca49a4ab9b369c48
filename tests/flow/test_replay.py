"""A select is made again from its trace alone, with the health of tools as it was then (I6)."""

from __future__ import annotations

import pytest

from tests.flow.worlds import Worlds, caller, tool
from toolcrib.errors import TraceError
from toolcrib.types import Caller, CallerKind, Code, JsonObject, ToolResult

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


def test_what_the_answer_rested_on_and_is_another_by_now_is_named(make_world: Worlds) -> None:
    one = make_world(TWINS, toml=READ, policy="permit (principal, action, resource);")
    trace_id = one.crib.select(TASK).trace_id
    (one.folder / "policy.cedar").write_text('permit (principal, action, resource == Tool::"a.find_invoice");')
    assert one.crib.replay(trace_id).differs == ("policy",)
    config = one.folder / "toolcrib.toml"
    config.write_text(config.read_text(encoding="utf-8") + "[retrieval]\ntop_k = 51\n", encoding="utf-8")
    assert one.crib.replay(trace_id).differs == ("policy", "options")
    one.crib.reject(["b.find_invoice"], reviewer="tests")
    assert set(one.crib.replay(trace_id).differs) == {"catalog", "policy", "index", "options"}


def test_a_call_cannot_be_replayed(make_world: Worlds) -> None:
    one = make_world(TWINS, toml=READ)
    with pytest.raises(TraceError):
        one.crib.replay(one.call("a.find_invoice", {"number": "1"}).trace_id)
