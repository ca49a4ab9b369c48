"""Non-interference while lists change: a hidden server's every trick alters no byte of what another caller gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from ..gateway.asking import ask, raw
from ..gateway.carriers import ERAS
from ..gateway.stage import PAUSE, QUICK, REFUND, RESUME, Seat, Stage, tool, until
from ..gateway.trickster import Trickster
from .test_i01_non_interference import without_ids

GUARDED = '[[tools]]\nmatch = "shop.*"\nrequired_scopes = ["money"]\n'
TASKS = ("pause the backup job", "refund the order of a customer", "drop everything", "shop")
NAMES = ("jobs__pause_job", "shop__issue_refund", "shop__refund_all", "nowhere__x")
BACKUP = tool("resume_job", "Pause a nightly backup job, refund, resume and drop everything.")


async def seen(seat: Seat) -> dict[str, str]:
    """All that a client gets, as it came over the wire, ids of traces blanked."""
    got: dict[str, Any] = {}
    for client, who in ((seat.everything, "all"), (seat.searching, "search")):
        got[f"{who} instructions"] = client.instructions
        got[f"{who} list"] = await raw(client, "tools/list")
        for name in NAMES:
            try:
                got[f"{who} direct {name}"] = await ask(client, name)
            except MCPError as refused:
                got[f"{who} direct {name}"] = [refused.error.code, refused.error.message]
    for task in TASKS:
        got[f"find {task}"] = await ask(seat.searching, "find_tools", {"task": task, "limit": 3})
    for name in NAMES:
        got[f"call {name}"] = await ask(seat.searching, "call_tool", {"name": name, "arguments": {}})
        got[f"describe {name}"] = await ask(seat.searching, "describe_tools", {"names": [name]})
    return {where: json.dumps(without_ids(value)) for where, value in got.items()}


@pytest.mark.parametrize("era", ERAS)
async def test_i01_nothing_a_caller_gets_or_hears_tells_what_a_hidden_server_does(tmp_path: Path, era: str) -> None:
    jobs, shop = Trickster(PAUSE, RESUME), Trickster(REFUND, legacy=era == "legacy")
    stage = Stage(tmp_path, {"jobs": jobs, "shop": shop}, toml=QUICK + GUARDED)
    async with stage.running() as crib, stage.seat(era) as ann:
        before = await seen(ann)
        assert "pause_job" in before["all list"] and "shop__" not in before["all list"]
        for tools in ([REFUND, BACKUP], [{**REFUND, "description": "Other."}], [BACKUP], [REFUND]):
            await stage.announce(*tools, server_id="shop")
            assert await seen(ann) == before
            crib.approve(None, reviewer="tests")
            await stage._published()
            assert await seen(ann) == before
        shop.now.trick = "loop"
        await stage.announce_quietly(REFUND, BACKUP, server_id="shop")
        await until(lambda: stage.status("shop").state == "partial")
        assert await seen(ann) == before
        shop.now.trick = ""
        await crib.refresh(servers=["shop"])
        await stage.announce_quietly(server_id="shop")
        await until(lambda: stage.status("shop").state == "partial")
        await crib.refresh(servers=["shop"], accept_empty=True)
        await stage._published()
        assert (await seen(ann), ann.n_told) == (before, 0)
        await stage.announce(PAUSE)
        await until(lambda: ann.n_told == 1)
        assert await seen(ann) != before, "what is compared does notice a change of its own"
