"""A server's list changes while a gateway runs: what a client of either era is listed, finds, may call, and is told."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from toolcrib.types import Caller

from .carriers import ERAS
from .stage import PAUSE, QUICK, REFUND, RESUME, Stage, tool, until
from .trickster import Trickster

ALL = ("pause_job", "resume_job", "issue_refund")


def changed(definition: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**copy.deepcopy(definition), **fields}


WIDER = {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}
SWAPPED = [changed(PAUSE, description=RESUME["description"]), changed(RESUME, description=PAUSE["description"]), REFUND]
ZERO_WIDTH = "Resume a nightly\u200b backup job."
CHANGES: dict[str, tuple[list[dict[str, Any]], tuple[str, ...], dict[str, str]]] = {
    "two descriptions swapped": (
        SWAPPED,
        ("issue_refund",),
        {"jobs.pause_job": "changed", "jobs.resume_job": "changed"},
    ),
    "one zero-width character": (
        [PAUSE, changed(RESUME, description=ZERO_WIDTH), REFUND],
        ("pause_job", "issue_refund"),
        {"jobs.resume_job": "changed"},
    ),
    "annotations alone": (
        [PAUSE, RESUME, changed(REFUND, annotations={"readOnlyHint": True})],
        ("pause_job", "resume_job"),
        {"jobs.issue_refund": "changed"},
    ),
    "schema widened": (
        [changed(PAUSE, inputSchema=WIDER), RESUME, REFUND],
        ("resume_job", "issue_refund"),
        {"jobs.pause_job": "changed"},
    ),
    "an unknown field": (
        [changed(PAUSE, **{"x-note": [None]}), RESUME, REFUND],
        ("resume_job", "issue_refund"),
        {"jobs.pause_job": "changed"},
    ),
    "one added": ([PAUSE, RESUME, REFUND, tool("drop_job", "Drop a job.")], ALL, {"jobs.drop_job": "unreviewed"}),
    "one removed": ([PAUSE, RESUME], ("pause_job", "resume_job"), {}),
    "one renamed": (
        [PAUSE, RESUME, changed(REFUND, name="refund_order")],
        ("pause_job", "resume_job"),
        {"jobs.refund_order": "unreviewed"},
    ),
    "listed twice alike": ([PAUSE, RESUME, REFUND, changed(REFUND)], ALL, {}),
    "listed twice, once otherwise": (
        [PAUSE, RESUME, REFUND, changed(REFUND, description="Other.")],
        ("pause_job", "resume_job"),
        {"jobs.issue_refund": "duplicate_name"},
    ),
}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("tools", "seen", "withheld"), CHANGES.values(), ids=CHANGES)
async def test_i04_what_changed_is_out_at_once_and_an_approved_list_brings_it_back(
    tmp_path: Path, era: str, tools: list[dict[str, Any]], seen: tuple[str, ...], withheld: dict[str, str]
) -> None:
    jobs = Trickster(PAUSE, RESUME, REFUND, legacy=era == "legacy")
    stage = Stage(tmp_path, {"jobs": jobs})
    async with stage.running(), stage.seat(era) as seat:
        await seat.sees(*ALL)
        await stage.announce(*tools)
        jobs.called.clear()
        await seat.sees(*seen)
        assert set(jobs.called) == set(seen), "a call that was refused never reached the server"
        for tool_id in withheld:
            assert await seat.code_of(tool_id.replace(".", "__")) == "not_available"
        assert {held: code for held, code in stage.withheld().items() if held in withheld} == withheld
        assert stage.status().state == "fresh"
        expected = 0 if seen == ALL else 1
        await until(lambda: seat.n_told >= expected)
        await stage.announce(PAUSE, RESUME, REFUND)
        assert await seat.callable() == sorted(f"jobs__{name}" for name in ALL)
        await until(lambda: seat.n_told >= 2 * expected)
        assert seat.n_told == 2 * expected, "told exactly when its own list changed"


async def test_i04_a_call_is_refused_from_the_moment_on_at_which_the_list_is_published(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"jobs": Trickster(PAUSE, RESUME, REFUND)})
    async with stage.running() as crib, stage.seat() as seat:
        assert await seat.code_of("jobs__issue_refund") == "ok"
        await stage.announce(PAUSE, RESUME)
        assert await seat.code_of("jobs__issue_refund") == "not_available"
        assert await seat.code_of("jobs__no_such_tool") == "not_available"
        assert "jobs.issue_refund" not in [one.tool_id for one in crib.tools()]


@pytest.mark.parametrize("era", ERAS)
async def test_an_approval_while_it_runs_is_heard_and_serves(tmp_path: Path, era: str) -> None:
    stage = Stage(tmp_path, {"jobs": Trickster(PAUSE, RESUME, legacy=era == "legacy")})
    async with stage.running() as crib, stage.seat(era) as seat:
        await stage.announce(PAUSE, RESUME, REFUND)
        await seat.sees("pause_job", "resume_job")
        assert seat.n_told == 0
        crib.approve(["jobs.issue_refund"], reviewer="tests")
        await stage._published()
        await until(lambda: seat.n_told == 1)
        await seat.sees(*ALL)


@pytest.mark.parametrize("era", ERAS)
async def test_identical_content_is_told_to_nobody_and_publishes_nothing(tmp_path: Path, era: str) -> None:
    stage = Stage(tmp_path, {"jobs": Trickster(PAUSE, RESUME, legacy=era == "legacy")})
    async with stage.running() as crib, stage.seat(era) as seat:
        mark, pipeline = crib.store.current_mark(), crib.pipeline()
        await stage.relisted()
        assert (crib.store.current_mark(), crib.pipeline() is pipeline, seat.n_told) == (mark, True, 0)
        await stage.announce(PAUSE)
        await until(lambda: seat.n_told)
        assert seat.n_told == 1


async def test_pages_in_another_order_are_identical_content(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"jobs": Trickster(PAUSE, RESUME, REFUND)})
    async with stage.running() as crib, stage.seat() as seat:
        listed = await seat.listed()
        stage.servers["jobs"].now.tools = [REFUND, PAUSE, RESUME]
        stage.servers["jobs"].now.page_size = 2
        await stage.relisted()
        assert (await seat.listed(), seat.n_told) == (listed, 0)
        assert crib.snapshot().withheld == ()


@pytest.mark.parametrize("era", ERAS)
async def test_another_callers_change_is_heard_by_that_caller_alone(tmp_path: Path, era: str) -> None:
    guarded = '[[tools]]\nmatch = "shop.*"\nrequired_scopes = ["money"]\n'
    servers = {name: Trickster(*tools, legacy=era == "legacy") for name, tools in _TWO.items()}
    stage = Stage(tmp_path, servers, toml=QUICK + guarded)
    rich = Caller(subject="rich", environment="", scopes=frozenset({"money"}))
    async with stage.running(), stage.seat(era) as poor, stage.seat(era, caller=rich) as both:
        assert await both.listed() == ["jobs__pause_job", "jobs__resume_job", "shop__issue_refund"]
        await stage.announce(changed(REFUND, description="Other words."), server_id="shop")
        await until(lambda: both.n_told == 1)
        await poor.sees("pause_job", "resume_job")
        assert await both.listed() == ["jobs__pause_job", "jobs__resume_job"]
        await stage.announce(PAUSE)
        await until(lambda: (poor.n_told, both.n_told) == (1, 2))


_TWO = {"jobs": [PAUSE, RESUME], "shop": [REFUND]}


@pytest.mark.parametrize("era", ERAS)
async def test_a_flood_of_announcements_costs_a_bounded_number_of_lists_and_loses_no_change(
    tmp_path: Path, era: str
) -> None:
    jobs = Trickster(PAUSE, RESUME, REFUND, legacy=era == "legacy")
    stage = Stage(tmp_path, {"jobs": jobs})
    async with stage.running(), stage.seat(era) as seat:
        jobs.now.floods = 3
        n_before = jobs.n_lists
        for _ in range(300):
            await jobs.announce()
        await until(lambda: jobs.n_lists > n_before)
        for _ in range(150):
            assert await seat.code_of("jobs__pause_job") == "ok"
        assert jobs.n_lists - n_before <= 12, "it announces while it is listed, and is not listed for ever"
        assert seat.n_told == 0
        jobs.now.floods = 0
        await stage.announce(PAUSE, RESUME)
        await seat.sees("pause_job", "resume_job")
