"""Attacks on what callers share: views, fingerprints and surfaces that are remembered, and a policy that is replaced
while others ask. Nobody is served from what was worked out for somebody else, nor by a policy that was gone before.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.flow.attackers import nothing_sent, refused_at, wire
from tests.flow.worlds import World, Worlds, caller, tool
from tests.identity.signing import RSA_A, key_file, public_jwk, signed
from toolcrib.policy.engine import PolicyEngine
from toolcrib.types import Caller, CallerKind, Code, Credential, Outcome, Revocation, RevokedKind, Stage, Trace

SHOP = [tool("get_order", "Look up one order of a customer."), tool("get_ledger", "Read the ledger of the company.")]
READ = '[[tools]]\nmatch = "*"\nrisk = "read"\n'
GET, LEDGER = "shop.get_order", "shop.get_ledger"
TASK = "read the ledger of the company"
ANN = caller(tenant="acme", roles=["clerk"], stage="plan", region="eu", clearance="low")
BO = caller(subject="bo", tenant="acme")
ROUNDS = 30


def ledger_if(condition: str) -> str:
    """Everything is permitted, but the ledger only so."""
    return f"""
permit (principal, action, resource);
@id("ledger") forbid (principal, action, resource == Tool::"{LEDGER}") unless {{ {condition} }};
"""


# --- callers who differ in one thing

PAIRS: dict[str, tuple[str, Caller]] = {
    "tenant": ('principal.tenant == "globex"', replace(ANN, tenant="globex")),
    "role": ('principal in Role::"auditor"', replace(ANN, roles=frozenset({"clerk", "auditor"}))),
    "scope": ('principal.scopes.contains("ledger")', replace(ANN, scopes=frozenset({"ledger"}))),
    "feature": ('principal.features.contains("new")', replace(ANN, features=frozenset({"new"}))),
    "clearance": ('principal.clearance == "high"', replace(ANN, clearance="high")),
    "stage": ('context.stage == "act"', replace(ANN, stage="act")),
    "region": ('context.region == "us"', replace(ANN, region="us")),
    "environment": ('context.environment == "lab"', replace(ANN, environment="lab")),
    "kind": ('principal.kind == "workload"', replace(ANN, kind=CallerKind.WORKLOAD)),
    "on whose behalf": ('principal.on_behalf_of == "bo"', replace(ANN, on_behalf_of="bo")),
    "subject": ('principal == User::"eve"', replace(ANN, subject="eve")),
    "scopes in two halves": ('principal.scopes.contains("a b")', replace(ANN, scopes=frozenset({"a b"}))),
}
HALVES = replace(ANN, scopes=frozenset({"a", "b"}))


def served(one: World, who: Caller) -> None:
    assert LEDGER in one.ids(who)
    assert LEDGER in [chosen.tool.tool_id for chosen in one.crib.select(TASK, caller=who).tools]
    assert one.call(LEDGER, caller=who).ok


def barred(one: World, who: Caller) -> None:
    assert one.ids(who) == [GET]
    assert LEDGER not in [chosen.tool.tool_id for chosen in one.crib.select(TASK, caller=who).tools]
    with nothing_sent(one):
        done = one.call(LEDGER, caller=who)
    assert done.code is Code.NOT_AVAILABLE
    trace = refused_at(
        one, done.trace_id, LEDGER, Stage.ELIGIBILITY, code=Code.NOT_AVAILABLE, why="not_permitted", check="reach"
    )
    assert (trace.subject, trace.tenant, trace.on_behalf_of) == (who.subject, who.tenant, who.on_behalf_of)


@pytest.mark.parametrize("first", ["who may", "who may not"])
@pytest.mark.parametrize(("condition", "may"), PAIRS.values(), ids=PAIRS.keys())
def test_callers_who_differ_in_one_thing_never_get_each_others_answers(
    make_world: Worlds, condition: str, may: Caller, first: str
) -> None:
    one = make_world({"shop": SHOP}, toml=READ, policy=ledger_if(condition))
    may_not = HALVES if "a b" in condition else ANN
    if first == "who may":
        served(one, may)
    for _ in range(5):
        barred(one, may_not)
        served(one, may)


def test_one_name_in_two_tenants_is_two_callers(make_world: Worlds) -> None:
    one = make_world({"shop": SHOP}, toml=READ + '[[tools]]\nmatch = "shop.get_ledger"\ntenants = ["globex"]\n')
    for _ in range(5):
        served(one, replace(ANN, tenant="globex"))
        barred(one, ANN)


def test_an_agent_is_judged_by_whom_it_acts_for_now(make_world: Worlds) -> None:
    one = make_world({"shop": SHOP}, toml=READ, policy=ledger_if('principal.scopes.contains("ledger")'))
    rich, poor = replace(ANN, scopes=frozenset({"ledger"})), ANN
    agent = replace(rich, subject="helper", kind=CallerKind.AGENT, on_behalf_of="ann")
    for _ in range(5):
        served(one, replace(agent, acting_for=rich))
        barred(one, replace(agent, acting_for=poor))
        barred(one, replace(agent, scopes=frozenset(), acting_for=rich))
        barred(one, replace(agent, acting_for=replace(rich, acting_for=poor)))
        served(one, agent)


def test_of_two_sessions_of_one_person_the_revoked_one_stays_out(make_world: Worlds) -> None:
    """The callers are equal, since a credential is no part of who it is; what it stands for is asked all the same."""
    one = make_world({"shop": SHOP}, toml=READ)
    credential = Credential(kind="file", session="s-1")
    out, still_in = replace(ANN, credential=credential), replace(ANN, credential=replace(credential, session="s-2"))
    assert out == still_in
    served(one, out)
    one.crib.store.revoke(Revocation(kind=RevokedKind.SESSION, value="s-1", at="2026-01-01T00:00:00+00:00", by="t"))
    for _ in range(5):
        served(one, still_in)
        with nothing_sent(one):
            done = one.call(LEDGER, caller=out)
        assert done.code is Code.UNAVAILABLE
        refused_at(one, done.trace_id, LEDGER, Stage.ELIGIBILITY, code=Code.UNAVAILABLE, why="unknown_caller")
        assert one.crib.select(TASK, caller=out).outcome is Outcome.UNAVAILABLE


def test_callers_in_many_threads_never_get_each_others_answers(make_world: Worlds) -> None:
    one = make_world({"shop": SHOP}, toml=READ, policy=ledger_if('principal.tenant == "globex"'))
    n_threads = 8
    together = threading.Barrier(n_threads)

    def asks(number: int) -> set[tuple[bool, bool]]:
        who = replace(ANN, tenant="globex" if number % 2 else "acme", clearance=str(number // 2 % 2))
        together.wait()
        seen = set()
        for round_ in range(ROUNDS):
            mine = replace(who, features=frozenset({str(round_)}))  # a view of its own in each round
            found = [chosen.tool.tool_id for chosen in one.crib.select(TASK, caller=mine).tools]
            seen.add((LEDGER in one.ids(mine), LEDGER in found))
        return seen

    with ThreadPoolExecutor(n_threads) as pool:
        answers = list(pool.map(asks, range(n_threads)))
    assert answers == [{(bool(number % 2),) * 2} for number in range(n_threads)]


async def test_callers_at_one_gateway_never_get_each_others_answers(make_world: Worlds) -> None:
    toml = (
        READ + '[[tools]]\nmatch = "shop.get_*"\npreload = true\n'
        '[[identity.jwt]]\nissuer = "https://issuer.example"\naudience = ["toolcrib"]\nkeys_file = "keys.json"\n'
        'claims = {tenant = "org.id"}\n'
    )
    make: Callable[[], World] = lambda: make_world(  # noqa: E731
        {"shop": SHOP}, toml=toml, policy=ledger_if('principal.tenant == "globex"')
    )
    one = await asyncio.to_thread(make)
    key_file(one.folder, public_jwk(RSA_A, "a"))
    tokens = {tenant: signed(org={"id": tenant}) for tenant in ("acme", "globex")}
    async with wire(one) as client:

        async def asks(tenant: str) -> tuple[str, bool, bool, bool]:
            token = tokens[tenant]
            listed = await client.post("tools/list", {}, token=token)
            found = await client.find(TASK, token=token)
            called = await client.call("shop__get_ledger", token=token)
            return tenant, "get_ledger" in listed.text, LEDGER in found, called.ran

        answers = await asyncio.gather(*(asks(tenant) for _ in range(ROUNDS) for tenant in tokens))
    assert set(answers) == {("acme", False, False, False), ("globex", True, True, True)}
    assert len(one.servers["shop"].calls) == ROUNDS


# --- a policy that is replaced while others ask

ONLY = 'permit (principal, action, resource == Tool::"{}");'


def text_of(number: int) -> str:
    """The policy of this number: even ones permit the order, odd ones the ledger. Each is of another length:
    with the coarse file times of some systems, two texts of one length within a moment look like one file."""
    rule = ONLY.format(LEDGER if number % 2 else GET)
    return f"{rule:<90}// {number:06}{'-' * number}\n"


def permitted_by(number: int) -> str:
    return LEDGER if number % 2 else GET


def replaces(path: Path, text: str) -> None:
    """As editors and deployments do: whole, or not at all."""
    beside = path.with_suffix(".new")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def overwrites(path: Path, text: str) -> None:
    """In place: for a moment the file is empty."""
    path.write_text(text, encoding="utf-8")


class Policies:
    """A policy file that is written again and again; knows which texts were in force between two moments.

    Args:
        write: how the file is written.

    `begun` and `done`: the number of the last text whose writing began and ended. `seen`: those that answers came by.
    """

    def __init__(self, path: Path, write: Callable[[Path, str], None]) -> None:
        self._path, self._write = path, write
        self.begun = self.done = 0
        self.versions: dict[str, int] = {}
        self.seen: set[int] = set()
        self.put(0)

    def put(self, number: int) -> None:
        self.versions[PolicyEngine.from_text(text_of(number)).version] = number
        self.begun = number
        self._write(self._path, text_of(number))
        self.done = number

    def put_many(self) -> None:
        """One after the other, and on until answers by several of them were seen."""
        while self.done < 5 * ROUNDS or len(self.seen) < 3:
            assert self.done < 100 * ROUNDS, "nobody asks meanwhile"
            self.put(self.done + 1)

    def check(self, trace: Trace, *, began_at: int, got: list[str]) -> int:
        """Hold one answer to the policy that its trace names; the number of that policy, -1 for none.

        Args:
            began_at: `done` when the request began. got: the tools that the answer gave.
        """
        record = trace.record(Stage.ELIGIBILITY)
        version = record.operator_view.get("policy_version") if record else None
        if version not in self.versions:  # met the file while it was empty or could not be used
            assert got == [], "without a policy nothing is given"
            return -1
        number = self.versions[version]
        assert began_at <= number <= self.begun, "a policy that was replaced before the request began"
        assert set(got) <= {permitted_by(number)}, "an answer by another policy than its trace names"
        self.seen.add(number)
        return number


WRITERS = pytest.mark.parametrize("write", [replaces, overwrites], ids=["replaced", "overwritten"])


@pytest.fixture
def reloading(make_world: Worlds) -> Iterator[Callable[..., tuple[World, Policies]]]:
    def make(write: Callable[[Path, str], None]) -> tuple[World, Policies]:
        one = make_world({"shop": SHOP}, toml=READ, policy=text_of(0))
        return one, Policies(one.folder / "policy.cedar", write)

    yield make


@WRITERS
def test_a_policy_that_was_replaced_is_gone_at_the_very_next_request(reloading: Any, write: Any) -> None:
    one, policies = reloading(write)
    for number in range(1, 2 * ROUNDS):
        policies.put(number)
        mine, other = permitted_by(number), permitted_by(number + 1)
        assert one.ids(ANN) == [mine]
        with nothing_sent(one):
            done = one.call(other, caller=ANN)
        refused_at(
            one, done.trace_id, other, Stage.ELIGIBILITY, code=Code.NOT_AVAILABLE, why="not_permitted", check="reach"
        )
        assert one.call(mine, caller=ANN).ok


@WRITERS
async def test_no_call_is_served_by_a_policy_that_was_replaced_before_it_began(reloading: Any, write: Any) -> None:
    one, policies = await asyncio.to_thread(reloading, write)
    over = threading.Event()

    def rewrites() -> None:
        try:
            policies.put_many()
        finally:
            over.set()

    async def calls(who: Caller, tool_id: str) -> None:
        while not over.is_set():
            began_at = policies.done
            done = await one.crib.call(tool_id, {}, caller=who)
            assert done.code in (Code.OK, Code.NOT_AVAILABLE, Code.UNAVAILABLE)
            got = [tool_id] if done.ok else []
            number = policies.check(one.crib.trace(done.trace_id), began_at=began_at, got=got)
            assert done.ok or number < 0 or permitted_by(number) != tool_id, "refused though it was permitted"

    writing = asyncio.create_task(asyncio.to_thread(rewrites))
    await asyncio.gather(writing, *(calls(who, tool_id) for who in (ANN, BO) for tool_id in (GET, LEDGER)))
    assert one.ids(ANN) == [permitted_by(policies.done)], "and the last one is in force"


@WRITERS
def test_no_selection_is_made_by_a_policy_that_was_replaced_before_it_began(reloading: Any, write: Any) -> None:
    one, policies = reloading(write)
    over = threading.Event()

    def selects(who: Caller) -> None:
        while not over.is_set():
            began_at = policies.done
            offer = one.crib.select("look up an order, read the ledger", caller=who)
            got = [chosen.tool.tool_id for chosen in offer.tools]
            policies.check(one.crib.trace(offer.trace_id), began_at=began_at, got=got)

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(selects, who) for who in (ANN, BO, ANN, BO)]
        try:
            policies.put_many()
        finally:
            over.set()
    assert [one.result() for one in asking] == [None] * 4


def test_a_call_under_way_is_judged_by_the_policy_at_its_end(make_world: Worlds) -> None:
    """Permitted when it began and forbidden when its server was ready: it is not sent."""
    one = make_world({"shop": SHOP}, toml=READ, policy=text_of(0))
    server = one.servers["shop"]

    async def forbids_meanwhile() -> None:
        replaces(one.folder / "policy.cedar", text_of(1))

    server.ready = forbids_meanwhile  # type: ignore[method-assign]
    with nothing_sent(one):
        done = one.call(GET, caller=ANN)
    assert done.code is Code.NOT_AVAILABLE
    refused_at(one, done.trace_id, GET, Stage.ELIGIBILITY, code=Code.NOT_AVAILABLE, why="not_permitted", check="reach")
