"""Requests while lists change: none fails, each is answered from one snapshot, for each caller alike."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from toolcrib.types import Caller

from .asking import ask
from .carriers import ERAS
from .stage import PAUSE, QUICK, REFUND, RESUME, Seat, Stage, until
from .trickster import Trickster

N_REFRESHES = 20
RICH = Caller(subject="rich", environment="", scopes=frozenset({"money"}))


@pytest.mark.parametrize("era", ERAS)
async def test_no_request_fails_while_lists_change_and_each_is_answered_from_one_snapshot(
    tmp_path: Path, era: str
) -> None:
    stage = Stage(tmp_path, {"jobs": Trickster(PAUSE, RESUME, REFUND, legacy=era == "legacy")})
    one, other = {"jobs__pause_job", "jobs__resume_job"}, {"jobs__pause_job", "jobs__issue_refund"}
    async with stage.running(), stage.seat(era) as seat:
        await stage.announce(PAUSE, RESUME)
        done = asyncio.Event()
        listed: list[set[str]] = []
        found: list[set[str]] = []
        calls: list[tuple[str, str]] = []

        async def list_and_search() -> None:
            while not done.is_set():
                listed.append(set(await seat.listed()))
                words = {"task": "pause or resume the backup job, or refund the order"}
                answer = await ask(seat.searching, "find_tools", words)
                found.append({hit["name"] for hit in answer["structuredContent"]["tools"]})

        async def call() -> None:
            while not done.is_set():
                for name in ("jobs__pause_job", "jobs__resume_job", "jobs__issue_refund"):
                    answer = await ask(seat.searching, "call_tool", {"name": name, "arguments": {}})
                    code = answer["structuredContent"]["code"] if answer.get("isError") else "ok"
                    calls.append((name, code))

        asking = [asyncio.create_task(work()) for work in (list_and_search, call, list_and_search, call)]
        for number in range(N_REFRESHES):
            await stage.announce(PAUSE, REFUND if number % 2 == 0 else RESUME)
        done.set()
        await asyncio.gather(*asking)
        assert all(names in (one, other) for names in listed)
        assert all(names and (names <= one or names <= other) for names in found)
        assert one in listed and other in listed
        assert {code for _, code in calls} == {"ok", "not_available"}
        assert {code for name, code in calls if name == "jobs__pause_job"} == {"ok"}
        assert stage.servers["jobs"].called.count("pause_job") == sum(name == "jobs__pause_job" for name, _ in calls)
        await until(lambda: seat.n_told > 1)


async def listed_found_callable(seat: Seat) -> list[list[str]]:
    servers = ("jobs", "shop")
    found = [name for server_id in servers for name in await seat.found(server_id)]
    callable_ = [name for server_id in servers for name in await seat.callable(server_id)]
    return [await seat.listed(), sorted(found), sorted(callable_)]


async def test_i10_for_each_of_two_callers_what_is_listed_is_found_and_callable_after_every_refresh(
    tmp_path: Path,
) -> None:
    guarded = '[[tools]]\nmatch = "shop.*"\nrequired_scopes = ["money"]\n'
    stage = Stage(tmp_path, {"jobs": Trickster(PAUSE, RESUME), "shop": Trickster(REFUND)}, toml=QUICK + guarded)
    async with stage.running(), stage.seat() as poor, stage.seat(caller=RICH) as rich:
        steps = [("jobs", [PAUSE]), ("shop", [REFUND, PAUSE]), ("shop", [{**REFUND, "title": "x"}]), ("jobs", [RESUME])]
        for server_id, tools in steps:
            await stage.announce(*tools, server_id=server_id)
            for seat in (poor, rich):
                listed, found, callable_ = await listed_found_callable(seat)
                assert listed == found == callable_
                assert seat is rich or not json.dumps(listed).count("shop")
        assert await rich.listed() == ["jobs__resume_job"]
