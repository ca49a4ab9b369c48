"""What was taken away counts at once, and what left is on record: callers, tokens, sessions, approvals, resources."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.coarse import CoarseFiles
from tests.flow.worlds import World, Worlds, caller, says_done, tool, with_default
from toolcrib.cli.serve import _Door
from toolcrib.errors import ConnectorError, PolicyError, RetrievalError, StoreError
from toolcrib.retrieval.index import Index
from toolcrib.store.sqlite import SqliteStore
from toolcrib.types import Code, JsonObject, Outcome, Presented, Stage, ToolResult

TEXT = {"type": "string"}
SHOP = [
    tool("get_order", "Look up one order.", properties={"order_id": {}, "ids": {}}),
    tool("order_owner", "Whose order it is.", properties={"order_id": TEXT}),
]
READ = '[[tools]]\nmatch = "*"\nrisk = "read"\n'
LOCAL_SCOPE = '[identity.local]\nscopes = ["orders"]\n'
SCOPED = '[[tools]]\nmatch = "shop.*"\nrisk = "read"\nrequired_scopes = ["orders"]\n'


@pytest.fixture
def world(make_world: Worlds) -> Worlds:
    return with_default(make_world, {"shop": SHOP})


def rewrite(world: World, old: str, new: str) -> None:
    config = world.folder / "toolcrib.toml"
    text = config.read_text(encoding="utf-8")
    assert old in text
    config.write_text(text.replace(old, new), encoding="utf-8")


# --- who asks


def test_nobody_is_not_the_local_operator(world: Worlds) -> None:
    one = world(toml=READ)
    nobody: Any = one.crib.bearer_caller("no-such-token-at-all")
    assert nobody is None
    assert one.crib.select("look up an order", caller=nobody).outcome is Outcome.UNAVAILABLE
    assert one.call("shop.get_order", {"order_id": "1"}, caller=nobody).code is Code.UNAVAILABLE
    with pytest.raises(PolicyError):
        one.crib.tools(nobody)
    assert one.servers["shop"].calls == []


def test_the_local_operators_lost_scope_counts_on_the_next_request(world: Worlds) -> None:
    one = world(toml=SCOPED + LOCAL_SCOPE)
    assert one.call("shop.get_order", {"order_id": "1"}).ok
    rewrite(one, LOCAL_SCOPE, "")
    assert one.call("shop.get_order", {"order_id": "1"}).code is Code.NOT_AVAILABLE


def test_a_removed_token_counts_on_the_next_request(world: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "a-token-of-some-length")
    row = '[[identity.tokens]]\ntoken = "env:A_TOKEN"\ncaller = {subject = "bot"}\n'
    one = world(toml=READ + row)
    known = one.crib.bearer_caller("a-token-of-some-length")
    assert known is not None and known.subject == "bot"
    rewrite(one, row, "")
    assert one.crib.bearer_caller("a-token-of-some-length") is None


def test_a_rotated_token_file_counts_and_an_unreadable_one_costs_its_own_caller_only(world: Worlds) -> None:
    rows = "".join(
        f'[[identity.tokens]]\ntoken = "file:{name}.token"\ncaller = {{subject = "{name}"}}\n' for name in ("a", "b")
    )
    one = world(toml=READ + rows)
    (one.folder / "a.token").write_text("first-token-of-some-length", encoding="utf-8")
    assert one.crib.bearer_caller("first-token-of-some-length") is not None
    assert [type(fault).__name__ for fault in one.crib.unreadable_tokens()] == ["ConfigError"]
    (one.folder / "a.token").write_text("other-token-of-some-length", encoding="utf-8")
    assert one.crib.bearer_caller("first-token-of-some-length") is None
    assert one.crib.bearer_caller("other-token-of-some-length") is not None


# --- between verdict and request


class SlowToOpen:
    """A server whose session takes its time, as cold starts do."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.opening = asyncio.Event()
        self.may_open = asyncio.Event()
        self.broken = False

    async def ready(self) -> None:
        self.opening.set()
        await self.may_open.wait()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


async def test_what_is_rejected_while_its_server_starts_is_not_sent(tmp_path: Path) -> None:
    one = await asyncio.to_thread(World, tmp_path, {"shop": SHOP}, toml=READ)
    slow = SlowToOpen(one.servers["shop"])
    one.crib._given["shop"] = slow  # type: ignore[assignment]
    calling = asyncio.create_task(one.crib.call("shop.get_order", {"order_id": "1"}))
    await slow.opening.wait()
    one.crib.reject(["shop.get_order"], reviewer="tests")
    slow.may_open.set()
    assert (await calling).code is Code.NOT_AVAILABLE
    assert one.servers["shop"].calls == []
    await one.crib.aclose()


async def test_a_call_that_is_cut_off_is_on_record_as_sent(tmp_path: Path) -> None:
    arrived = asyncio.Event()

    async def never(_name: str, _arguments: JsonObject) -> ToolResult:
        arrived.set()
        await asyncio.Event().wait()
        raise AssertionError

    one = await asyncio.to_thread(World, tmp_path, {"shop": SHOP}, toml=READ, handler=never)
    calling = asyncio.create_task(one.crib.call("shop.get_order", {"order_id": "1"}))
    await arrived.wait()
    calling.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await calling
    trace = one.crib.store.traces()[0]
    execution = trace.record(Stage.EXECUTION)
    assert execution is not None and execution.operator_view["code"] == "sent"
    assert one.crib.explain(trace.trace_id, tool_id="shop.get_order").lost_at is Stage.EXECUTION
    await one.crib.aclose()


def test_nothing_is_sent_when_the_trace_cannot_be_written(world: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    one = world(toml=READ)

    def full(_self: SqliteStore, _trace: Any) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(SqliteStore, "put_trace", full)
    with pytest.raises(StoreError):
        one.call("shop.get_order", {"order_id": "1"})
    assert one.servers["shop"].calls == []


async def test_a_server_configured_anew_is_opened_anew(tmp_path: Path) -> None:
    one = await asyncio.to_thread(World, tmp_path, {"shop": SHOP}, toml=READ)
    opened = []
    crib = one.crib
    crib._given.clear()
    crib._pool._open_one = lambda server_id, _caller: opened.append(server_id) or one.servers[server_id]  # type: ignore[func-returns-value]
    assert (await crib.call("shop.get_order", {"order_id": "1"})).ok
    assert (await crib.call("shop.get_order", {"order_id": "1"})).ok
    assert opened == ["shop"], "one session for many calls"
    rewrite(one, 'path = "shop.tools.json"', 'path = "./shop.tools.json"')
    assert (await crib.call("shop.get_order", {"order_id": "1"})).ok
    assert opened == ["shop", "shop"]
    await crib.aclose()


async def test_a_connector_of_the_applications_own_survives_a_new_configuration(tmp_path: Path) -> None:
    one = await asyncio.to_thread(World, tmp_path, {"shop": SHOP}, toml=READ)
    closed = []

    async def noted() -> None:
        closed.append(1)

    one.servers["shop"].aclose = noted  # type: ignore[method-assign]
    assert (await one.crib.call("shop.get_order", {"order_id": "1"})).ok
    rewrite(one, 'path = "shop.tools.json"', 'path = "./shop.tools.json"')
    assert (await one.crib.call("shop.get_order", {"order_id": "1"})).ok
    assert closed == []
    await one.crib.aclose()


async def test_a_scope_lost_while_the_server_starts_counts(tmp_path: Path) -> None:
    one = await asyncio.to_thread(World, tmp_path, {"shop": SHOP}, toml=SCOPED + LOCAL_SCOPE)
    slow = SlowToOpen(one.servers["shop"])
    one.crib._given["shop"] = slow  # type: ignore[assignment]
    calling = asyncio.create_task(one.crib.call("shop.get_order", {"order_id": "1"}))
    await slow.opening.wait()
    rewrite(one, LOCAL_SCOPE, "")
    slow.may_open.set()
    assert (await calling).code is Code.NOT_AVAILABLE
    assert one.servers["shop"].calls == []
    await one.crib.aclose()


async def test_a_token_taken_away_while_the_server_starts_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "a-token-of-some-length")
    row = '[[identity.tokens]]\ntoken = "env:A_TOKEN"\ncaller = {subject = "bot"}\n'
    one = await asyncio.to_thread(World, tmp_path, {"shop": SHOP}, toml=READ + row)
    slow = SlowToOpen(one.servers["shop"])
    one.crib._given["shop"] = slow  # type: ignore[assignment]
    bot = one.crib.bearer_caller("a-token-of-some-length")
    assert bot is not None
    calling = asyncio.create_task(one.crib.call("shop.get_order", {"order_id": "1"}, caller=bot))
    await slow.opening.wait()
    rewrite(one, row, "")
    slow.may_open.set()
    assert (await calling).code is Code.UNAVAILABLE
    assert one.servers["shop"].calls == []
    await one.crib.aclose()


async def test_a_call_given_up_before_it_left_is_on_record(tmp_path: Path) -> None:
    one = await asyncio.to_thread(World, tmp_path, {"shop": SHOP}, toml=READ)
    slow = SlowToOpen(one.servers["shop"])
    one.crib._given["shop"] = slow  # type: ignore[assignment]
    calling = asyncio.create_task(one.crib.call("shop.get_order", {"order_id": "1"}))
    await slow.opening.wait()
    calling.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await calling
    gate = one.crib.store.traces()[0].record(Stage.GATE)
    assert gate is not None and gate.operator_view["code"] == "cancelled"
    await one.crib.aclose()


def test_an_approval_is_not_used_up_by_a_call_that_could_not_be_recorded(
    world: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = world(toml='[[tools]]\nmatch = "*"\nrisk = "destructive"\n')
    asked = one.call("shop.get_order", {"order_id": "1"})
    assert one.crib.decide_approval(asked.verdict.approval_id, granted=True, approver=caller(subject="boss")).done

    def full(_self: SqliteStore, _trace: Any) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "put_trace", full)
        with pytest.raises(StoreError):
            one.call("shop.get_order", {"order_id": "1"})
    assert one.call("shop.get_order", {"order_id": "1"}).ok
    assert len(one.servers["shop"].calls) == 1


def test_a_server_that_cannot_be_opened_is_said_and_nothing_is_sent(world: Worlds) -> None:
    one = world(toml=READ)

    async def fails() -> None:
        raise ConnectorError("no such program")

    one.servers["shop"].ready = fails  # type: ignore[method-assign]
    done = one.call("shop.get_order", {"order_id": "1"})
    assert (done.code, one.servers["shop"].calls) == (Code.UNAVAILABLE, [])
    assert one.crib.explain(done.trace_id, tool_id="shop.get_order").lost_at is Stage.EXECUTION


# --- the door


def test_taking_the_last_token_away_opens_the_door_to_nobody(world: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "a-token-of-some-length")
    row = '[[identity.tokens]]\ntoken = "env:A_TOKEN"\ncaller = {subject = "bot"}\n'
    one = world(toml=READ + row)
    door = _Door(crib=one.crib, as_file=None, alone=True, open_to_anybody=False)
    known = asyncio.run(door.caller(Presented(authorization="Bearer a-token-of-some-length")))
    assert known is not None and known.subject == "bot"
    rewrite(one, row, "")
    for header in ("Bearer a-token-of-some-length", "Bearer junk", "Basic junk", None):
        assert asyncio.run(door.caller(Presented(authorization=header))) is None


def test_without_tokens_only_who_shows_none_and_only_from_this_machine_is_the_operator(
    world: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "a-token-of-some-length")
    one = world(toml=READ)
    near = _Door(crib=one.crib, as_file=None, alone=True, open_to_anybody=True)
    far = _Door(crib=one.crib, as_file=None, alone=False, open_to_anybody=True)
    operator = asyncio.run(near.caller(Presented()))
    assert operator is not None and operator.subject == one.crib.local_caller.subject
    assert asyncio.run(near.caller(Presented(authorization="Bearer junk"))) is None
    assert asyncio.run(far.caller(Presented())) is None
    row = '[[identity.tokens]]\ntoken = "env:A_TOKEN"\ncaller = {subject = "bot"}\n'
    rewrite(one, READ, READ + row)
    assert asyncio.run(near.caller(Presented())) is None, "as soon as there are tokens, one is needed"


# --- resources

RESOURCE = """
[[resources]]
type = "Order"
tools = "shop.get_order"
argument = "/ids/0"
lookup_tool = "shop.order_owner"
lookup_argument = "order_id"
tenant = "/tenant"
"""


async def owners(name: str, arguments: JsonObject) -> ToolResult:
    if name != "order_owner":
        return await says_done(name, arguments)
    tenant = {"mine": "acme", "theirs": "globex"}.get(arguments["order_id"], "")
    return ToolResult(code=Code.OK, structured={"tenant": tenant}, raw={"content": []}, reached_server=True)


@pytest.mark.parametrize(
    ("ids", "allowed"),
    [
        (["mine"], True),
        (["theirs"], False),
        (("theirs",), False),
        (["nobody"], False),
        ([None], False),
        ([["theirs"]], False),
        ([{"$ne": None}], False),
        ([True], False),
        ([], True),
    ],
    ids=repr,
)
def test_only_a_resource_of_the_callers_tenant_passes_whatever_shape_names_it(
    world: Worlds, ids: Any, allowed: bool
) -> None:
    one = world(toml=READ + RESOURCE, handler=owners)
    done = one.call("shop.get_order", {"ids": ids}, caller=caller(tenant="acme"))
    assert (done.code is Code.OK) == allowed, done
    if not allowed:
        assert done.code is Code.NOT_AVAILABLE
        assert [name for name, _arguments in one.servers["shop"].calls if name == "get_order"] == []


async def test_arguments_changed_while_the_owner_is_asked_change_nothing(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"ids": ["mine"]}

    async def tampering(name: str, asked: JsonObject) -> ToolResult:
        arguments["ids"][0] = "theirs"
        return await owners(name, asked)

    one = await asyncio.to_thread(World, tmp_path, {"shop": SHOP}, toml=READ + RESOURCE, handler=tampering)
    done = await one.crib.call("shop.get_order", arguments, caller=caller(tenant="acme"))
    assert done.ok
    assert one.servers["shop"].calls[-1] == ("get_order", {"ids": ["mine"]})
    await one.crib.aclose()


async def test_a_rule_added_while_the_owner_is_asked_holds(tmp_path: Path) -> None:
    more = RESOURCE.replace("/ids/0", "/order_id")

    async def meanwhile(name: str, asked: JsonObject) -> ToolResult:
        config = tmp_path / "toolcrib.toml"
        text = config.read_text(encoding="utf-8")
        if more not in text:
            config.write_text(text + more, encoding="utf-8")
        return await owners(name, asked)

    one = await asyncio.to_thread(World, tmp_path, {"shop": SHOP}, toml=READ + RESOURCE, handler=meanwhile)
    asked = {"ids": ["mine"], "order_id": "theirs"}
    assert (await one.crib.call("shop.get_order", asked, caller=caller(tenant="acme"))).code is Code.NOT_AVAILABLE
    await one.crib.aclose()


# --- limits, reviews, refresh, search


def test_one_tenants_calls_do_not_use_up_anothers_allowance_and_the_limit_is_read_anew(world: Worlds) -> None:
    one = world(toml=READ + "[gate]\ncalls_per_minute = 1\n")
    ann, other = caller(tenant="acme"), caller(tenant="globex")
    codes = [one.call("shop.get_order", {"order_id": "1"}, caller=who).code for who in (ann, ann, other)]
    assert codes == [Code.OK, Code.RATE_LIMITED, Code.OK]
    rewrite(one, "calls_per_minute = 1", "calls_per_minute = 0")
    assert one.call("shop.get_order", {"order_id": "1"}, caller=ann).ok


def test_an_approval_of_another_tool_does_not_bring_a_rejected_one_back(world: Worlds) -> None:
    one = world(toml=READ)
    before = (one.folder / "toolcrib.lock").read_text(encoding="utf-8")
    one.crib.reject(["shop.get_order"], reviewer="tests")
    (one.folder / "toolcrib.lock").write_text(before, encoding="utf-8")
    assert one.ids() == ["shop.order_owner"], "the newest word on this digest is a rejection"
    one.crib.approve(["shop.get_order"], reviewer="tests")
    assert one.ids() == ["shop.get_order", "shop.order_owner"]


def test_a_locked_store_does_not_lose_the_servers_that_were_not_asked(
    world: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = world({"shop": SHOP, "hub": [tool("create_issue", "Create an issue.")]})
    before = one.ids()

    def locked(_self: SqliteStore, *_queries: Any) -> Any:
        raise StoreError("database is locked")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "_read", locked)
        with pytest.raises(StoreError):
            asyncio.run(one.crib.refresh(servers=["shop"]))
    assert one.ids() == before


def test_a_search_that_fails_does_not_raise_where_tools_are_only_disclosed(
    world: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = 'permit (principal, action == Action::"discover", resource);'
    one = world(policy=policy)

    def fails(_self: Index, _permitted: Any, **_how: Any) -> Any:
        class Down:
            def search(self, *_args: Any, **_kwargs: Any) -> Any:
                raise RetrievalError("down")

        return Down()

    monkeypatch.setattr(Index, "view", fails)
    offer = one.crib.select("look up an order")
    assert offer.tools == ()
    assert offer.selection.degraded


def test_a_broken_policy_is_explained_as_eligibility(world: Worlds) -> None:
    one = world(policy="permit (principal, action, resource);")
    (one.folder / "policy.cedar").write_text("permit (", encoding="utf-8")
    offer = one.crib.select("look up an order")
    assert one.crib.explain(offer.trace_id, tool_id="shop.get_order").lost_at is Stage.ELIGIBILITY


def test_a_hidden_tool_that_was_called_was_lost_at_eligibility(world: Worlds) -> None:
    one = world(toml=SCOPED)
    refused = one.call("shop.get_order", {"order_id": "1"}, caller=caller(scopes=[]))
    assert one.crib.explain(refused.trace_id, tool_id="shop.get_order").lost_at is Stage.ELIGIBILITY
    assert json.loads(json.dumps(refused.to_dict()))["code"] == "not_available"


@pytest.mark.parametrize("waits", [0.0, 2.1], ids=["at-once", "after-a-while"])
@pytest.mark.parametrize("kind", ["policy", "settings"])
def test_a_text_of_equal_length_written_within_one_tick_of_a_coarse_clock_counts(
    world: Worlds, kind: str, waits: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = CoarseFiles(monkeypatch)
    permit, forbid = "permit (principal, action, resource);", "forbid (principal, action, resource);"
    one = world(policy=permit, toml='[[tools]]\nmatch = "shop.*"\nenabled = true \n')
    assert one.ids() != []
    if kind == "policy":
        (one.folder / "policy.cedar").write_text(forbid, encoding="utf-8")
    else:
        rewrite(one, "enabled = true ", "enabled = false")
    files.passes(waits)
    assert one.ids() == []
