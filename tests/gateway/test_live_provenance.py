"""A package that is replaced under a server while its definitions stay: out of service until somebody approves it."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from toolcrib.crib import Crib
from toolcrib.doctoring import examined
from toolcrib.review_queue import ServerReview

from ..connectors.conftest import SERVERS
from ..connectors.provenance.making import distribution, venv
from .stage import PAUSE, QUICK, REFUND, RESUME, Stage, until

ALL = ("pause_job", "resume_job", "issue_refund")
TOOLCRIB = [sys.executable, "-m", "toolcrib.cli"]
MORTAL = """
import os, threading, time

def wait_for_the_end():
    while not os.path.exists("end"):
        time.sleep(0.02)
    os._exit(9)

if not os.path.exists("end"):
    threading.Thread(target=wait_for_the_end, daemon=True).start()
"""
"""Whoever runs when a file `end` appears in its folder ends; who starts later does not."""
SERVER = MORTAL + (SERVERS / "rude.py").read_text(encoding="utf-8")
DONE = {"result": {"content": [{"type": "text", "text": "done"}]}}
SCRIPT = {
    "pages": [[None, json.dumps({"tools": [PAUSE, RESUME, REFUND]})]],
    "calls": dict.fromkeys(ALL, DONE),
}


class Packaged(Stage):
    """One server: a package `greeter` in a virtual environment, started with `python -m`."""

    def install(self, version: str, *, text: str = "") -> None:
        """This version, in place of the one before. Each lists the same definitions."""
        place = self.folder / "venv"
        shutil.rmtree(place, ignore_errors=True)
        venv(place)
        files = {"greeter/__init__.py": "", "greeter/__main__.py": SERVER, "greeter/sending.py": text}
        distribution(place, files, version=version)

    @asynccontextmanager
    async def running(self, *, more: str = "") -> AsyncIterator[Crib]:
        self.install("1.0.0")
        log = json.dumps({**SCRIPT, "log": str(self.folder / "log")})
        command = json.dumps([str(self.folder / "venv/bin/python"), "-m", "greeter", log])
        row = f'[[servers]]\nid = "jobs"\ntransport = "stdio"\ncommand = {command}\n{more}'
        (self.folder / "toolcrib.toml").write_text('[crib]\nname = "t"\n' + row + QUICK, encoding="utf-8")
        async with Crib.open(self.folder, on_progress=self.told.append) as self.crib:
            await self.crib.refresh()
            self.crib.approve(None, reviewer="tests")
            yield self.crib

    def called(self) -> list[str]:
        """The tools that the package's server was really asked to run."""
        return [one["params"]["name"] for one in self._asked() if one["method"] == "tools/call"]

    def n_lists(self) -> int:
        return sum(one["method"] == "tools/list" for one in self._asked())

    def _asked(self) -> list[dict[str, Any]]:
        whole, _, _begun = (self.folder / "log").read_text().rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]

    def waiting(self) -> ServerReview:
        [server] = [one for one in self.crib.review_desk.queue().servers if one.waits]
        return server

    async def lock_check(self) -> tuple[int, list[str]]:
        """`toolcrib lock check`, as CI runs it: its exit status and lines."""
        words = [*TOOLCRIB, "-C", str(self.folder), "lock", "check"]
        done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout.splitlines()


async def test_another_version_under_the_same_definitions_is_provenance_until_the_server_is_approved(
    tmp_path: Path,
) -> None:
    stage = Packaged(tmp_path, {})
    async with stage.running() as crib, stage.seat() as seat:
        await seat.sees(*ALL)
        assert await stage.lock_check() == (0, [])
        stage.install("1.1.0", text="import smtplib\n")
        report = await crib.refresh()
        assert (report.added, report.changed, report.removed) == ((), (), ())
        n_called = len(stage.called())
        await stage._published()
        await seat.sees()
        assert len(stage.called()) == n_called
        await until(lambda: seat.n_told == 1)
        assert stage.withheld() == dict.fromkeys([f"jobs.{name}" for name in ALL], "provenance")
        assert examined(crib).servers[0].provenance == "changed"
        code, lines = await stage.lock_check()
        assert (code, [line.split()[:2] for line in lines if line.startswith("PROV")]) == (1, [["PROVENANCE", "jobs"]])
        shown = stage.waiting()
        assert ("version", "1.0.0", "1.1.0") in shown.changes
        assert crib.approve_server("jobs", digest=shown.digest, reviewer="tests")
        await stage._published()
        await seat.sees(*ALL)
        await until(lambda: seat.n_told == 2)
        assert await stage.lock_check() == (0, [])


async def test_the_same_version_with_other_files_is_another_package(tmp_path: Path) -> None:
    stage = Packaged(tmp_path, {})
    async with stage.running() as crib, stage.seat() as seat:
        stage.install("1.0.0", text="import smtplib\n")
        await crib.refresh()
        await seat.sees()
        assert [field for field, _was, _now in stage.waiting().changes] == ["integrity"]
        stage.install("1.0.0")
        await crib.refresh()
        await seat.sees(*ALL)


async def test_a_package_that_changed_after_the_list_gets_no_call_in_a_new_session(tmp_path: Path) -> None:
    stage = Packaged(tmp_path, {})
    async with stage.running(), stage.seat() as seat:
        stage.install("1.1.0", text="import smtplib\n")
        assert await seat.code_of("jobs__pause_job") == "unavailable"
        assert stage.called() == []


async def test_where_a_server_is_to_warn_only_it_serves_and_says_so(tmp_path: Path) -> None:
    stage = Packaged(tmp_path, {})
    async with stage.running(more='on_provenance = "warn"\n') as crib, stage.seat() as seat:
        stage.install("1.1.0", text="import smtplib\n")
        await crib.refresh()
        await stage._published()
        await seat.sees(*ALL)
        assert seat.n_told == 0
        assert (examined(crib).servers[0].provenance, stage.withheld()) == ("changed", {})
        code, lines = await stage.lock_check()
        assert code == 1 and lines[0].startswith("PROVENANCE jobs")
        assert stage.waiting().on_change == "warn"


@pytest.mark.parametrize("how", ["its process ends", "another process refreshes"])
async def test_a_running_gateway_takes_a_replaced_package_out_once_it_is_seen_to_run(tmp_path: Path, how: str) -> None:
    stage = Packaged(tmp_path, {})
    async with stage.running() as crib, stage.seat() as seat, crib.watch(on_published=stage._published):
        await seat.sees(*ALL)
        stage.install("1.1.0", text="import smtplib\n")
        if how == "its process ends":
            (tmp_path / "end").touch()
        else:
            words = [*TOOLCRIB, "-C", str(tmp_path), "refresh"]
            done = await asyncio.to_thread(subprocess.run, words, capture_output=True, timeout=60)
            assert done.returncode in (0, 1)
        await until(lambda: "provenance" in stage.withheld().values())
        await seat.sees()
        assert crib.approve_server("jobs", digest=stage.waiting().digest, reviewer="tests")
        await seat.sees(*ALL)


async def test_the_old_process_that_a_gateway_still_listens_to_does_not_undo_what_a_refresh_saw(tmp_path: Path) -> None:
    stage = Packaged(tmp_path, {})
    async with stage.running(more="refresh_s = 0.1\n") as crib, crib.watch():
        await until(lambda: stage.n_lists() >= 3)
        stage.install("1.1.0", text="import smtplib\n")
        await crib.refresh()
        assert set(stage.withheld().values()) == {"provenance"}
        n_lists = stage.n_lists()
        await until(lambda: stage.n_lists() >= n_lists + 3)
        assert set(stage.withheld().values()) == {"provenance"}
        assert crib.approve_server("jobs", digest=stage.waiting().digest, reviewer="tests")
        n_lists = stage.n_lists()
        await until(lambda: stage.n_lists() >= n_lists + 3)
        assert stage.withheld() == {}
