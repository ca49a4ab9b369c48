"""Many servers at once."""

from __future__ import annotations

import asyncio

import pytest

from toolcrib.connectors.functions import FunctionServer
from toolcrib.connectors.listing import ListingFailure, list_all
from toolcrib.errors import ConfigError, ConnectorError, ConnectorTimeoutError
from toolcrib.types import ServerListing


class Fake(FunctionServer):
    def __init__(self, server_id, *, error=None, gate=None):
        super().__init__(server_id, {"a": ({}, print)})
        self.error, self.gate, self.closed = error, gate, False

    async def list_tools(self):
        if self.gate is not None:
            await self.gate()
        if self.error is not None:
            raise self.error
        return await super().list_tools()

    async def aclose(self):
        self.closed = True


@pytest.mark.parametrize(
    "error",
    [
        ConnectorTimeoutError("late"),
        RuntimeError("unforeseen"),
        ExceptionGroup("tasks", [OSError("pipe")]),
        BaseExceptionGroup("tasks", [asyncio.CancelledError()]),
        asyncio.CancelledError(),
    ],
    ids=["ours", "unforeseen", "group", "group of cancellations", "stray cancellation"],
)
async def test_one_failing_server_never_costs_the_others(error):
    servers = {"a": Fake("a"), "b": Fake("b", error=error), "c": Fake("c")}
    first, failed, last = await list_all(list(servers), servers.__getitem__)
    assert isinstance(first, ServerListing) and isinstance(last, ServerListing)
    assert isinstance(failed, ListingFailure) and isinstance(failed.error, ConnectorError)
    assert failed.server_id == "b"
    assert all(server.closed for server in servers.values())


async def test_a_connector_that_is_kept_open_is_not_closed():
    servers = {"a": Fake("a"), "b": Fake("b"), "c": Fake("c", error=ConnectorError("broken"))}
    await list_all(list(servers), servers.__getitem__, keep_open={"a", "c"})
    assert {server_id: server.closed for server_id, server in servers.items()} == {"a": False, "b": True, "c": False}


async def test_server_that_cannot_be_opened_is_a_failure():
    def open_one(server_id):
        raise ConfigError("no such variable")

    (failed,) = await list_all(["a"], open_one)
    assert isinstance(failed.error, ConfigError)


async def test_answers_keep_the_order_of_the_question():
    turn = asyncio.Event()

    async def second_first():
        await turn.wait()

    async def let_go():
        turn.set()

    servers = {"slow": Fake("slow", gate=second_first), "fast": Fake("fast", gate=let_go)}
    listings = await list_all(["slow", "fast"], servers.__getitem__)
    assert [listing.server_id for listing in listings] == ["slow", "fast"]


async def test_no_more_than_max_parallel_servers_run_at_once():
    running, most = 0, 0

    async def count():
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        await asyncio.sleep(0)
        running -= 1

    ids = [str(n) for n in range(10)]
    await list_all(ids, lambda server_id: Fake(server_id, gate=count), max_parallel=3)
    assert most == 3


async def test_progress_tells_each_step():
    steps = []
    servers = {"a": Fake("a"), "b": Fake("b", error=ConnectorError("broken"))}
    await list_all(list(servers), servers.__getitem__, on_progress=steps.append, max_parallel=1)
    assert [(s.server_id, s.state, s.n_done, s.n_servers, s.n_tools, s.error) for s in steps] == [
        ("a", "started", 0, 2, 0, ""),
        ("a", "listed", 1, 2, 1, ""),
        ("b", "started", 1, 2, 0, ""),
        ("b", "failed", 2, 2, 0, "broken"),
    ]


async def test_cancelling_ends_the_whole_and_closes_the_servers():
    begun = asyncio.Event()

    async def forever():
        begun.set()
        await asyncio.Event().wait()

    server = Fake("a", gate=forever)
    task = asyncio.create_task(list_all(["a"], lambda _: server))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert server.closed


def test_keyboard_interrupt_is_no_failure_of_a_server():
    with pytest.raises(BaseException) as caught:
        asyncio.run(list_all(["a"], lambda _: Fake("a", error=KeyboardInterrupt())))
    assert isinstance(caught.value, KeyboardInterrupt)


async def test_no_servers_give_no_answers():
    assert await list_all([], Fake) == ()
    assert await list_all([], Fake, on_progress=None) == ()


async def test_real_servers_are_listed_beside_a_crashing_and_a_hanging_one(rude):
    page = [[None, '{"tools":[{"name":"a"}]}']]
    scripts = {
        "good": {"pages": page},
        "crash": {"start": "crash"},
        "hang": {"start": "hang", "spec": {"start_timeout_s": 0.5}},
        "also_good": {"pages": page, "modern": True},
    }
    answers = await list_all(list(scripts), lambda server_id: rude(**scripts[server_id]))
    assert [isinstance(answer, ServerListing) for answer in answers] == [True, False, False, True]
    assert isinstance(answers[2].error, ConnectorTimeoutError)
