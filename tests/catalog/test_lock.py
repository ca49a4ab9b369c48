"""The lock: readable, sorted, replaced whole; a damaged one approves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from toolcrib.catalog import lock as lock_module
from toolcrib.catalog.lock import locked, read_lock, update_lock, write_lock
from toolcrib.catalog.pins import Lock, ServerPin, ToolPin
from toolcrib.errors import CatalogError

DIGEST = "sha256:" + "0" * 64


def holding(*tool_ids: str) -> Lock:
    return Lock(tools={tool_id: ToolPin(digest=DIGEST) for tool_id in tool_ids})


def adding(tool_id: str) -> Callable[[Lock], Lock]:
    return lambda lock: replace(lock, tools={**lock.tools, tool_id: ToolPin(digest=DIGEST)})


def test_what_is_written_is_read_and_sorted(tmp_path: Path) -> None:
    lock = tmp_path / "toolcrib.lock"
    write_lock(lock, holding("b.x", "a.x"))
    assert read_lock(lock) == holding("a.x", "b.x")
    text = lock.read_text(encoding="utf-8")
    assert text.index("a.x") < text.index("b.x")
    assert list(tmp_path.iterdir()) == [lock], "no temporary file is left behind"


def test_no_lock_approves_nothing(tmp_path: Path) -> None:
    assert read_lock(tmp_path / "none") == Lock()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 3, "tools": {}}',
        '{"version": 1}',
        '{"version": 1, "tools": {"a.b": {"digest": 5}}}',
        f'{{"version": 1, "tools": {{"a.b": {{"digest": "{DIGEST}"}}, "a.b": {{"digest": "{DIGEST}"}}}}}}',
        f'{{"version": 1, "tools": {{"a.b": {{"digest": "{DIGEST}", "digest": "{DIGEST}"}}}}}}',
        '{"version": 1, "tools": {}, "tools": {}}',
        '{"version": 1, "tools": ' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
    ids=["empty", "open", "list", "version", "no-tools", "number", "tool-twice", "digest-twice", "tools-twice", "deep"],
)
def test_a_damaged_lock_is_an_error_and_not_an_empty_one(tmp_path: Path, text: str) -> None:
    lock = tmp_path / "toolcrib.lock"
    lock.write_text(text, encoding="utf-8")
    with pytest.raises(CatalogError):
        read_lock(lock)


def test_an_update_is_read_change_write(tmp_path: Path) -> None:
    lock = tmp_path / "new" / "toolcrib.lock"
    assert update_lock(lock, adding("a.x")) == holding("a.x")
    update_lock(lock, adding("a.y"))
    assert update_lock(
        lock, lambda lock: Lock(tools={t: pin for t, pin in lock.tools.items() if t != "a.x"})
    ) == holding("a.y")
    assert read_lock(lock) == holding("a.y")


def test_an_update_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    lock = tmp_path / "toolcrib.lock"
    write_lock(lock, holding("a.x"))
    before = lock.stat()
    assert update_lock(lock, lambda lock: replace(lock)) == holding("a.x")
    assert (lock.stat().st_ino, lock.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_no_update_undoes_another(tmp_path: Path) -> None:
    lock = tmp_path / "toolcrib.lock"
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: update_lock(lock, adding(f"a.{n}")), range(80)))
    assert read_lock(lock) == holding(*(f"a.{n}" for n in range(80)))


def test_another_process_waits_for_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "toolcrib.lock"
    code = (
        "import sys; from pathlib import Path; from toolcrib.catalog import lock; lock._WAIT_S = 0.05\n"
        "pins = {'b.x': lock.ToolPin(digest='sha256:1')}\n"
        "try: lock.update_lock(Path(sys.argv[1]), lambda _: lock.Lock(tools=pins))\n"
        "except lock.CatalogError: sys.exit(7)"
    )
    other = [sys.executable, "-c", code, str(lock)]
    with locked(lock):
        assert subprocess.run(other, check=False).returncode == 7
    assert read_lock(lock) == Lock()
    assert subprocess.run(other, check=False).returncode == 0
    assert read_lock(lock).approved == {"b.x": "sha256:1"}


def test_who_waits_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "_WAIT_S", 0.0)
    with locked(tmp_path / "toolcrib.lock"), pytest.raises(CatalogError):
        update_lock(tmp_path / "toolcrib.lock", adding("a.x"))
    update_lock(tmp_path / "toolcrib.lock", adding("a.x"))


@pytest.mark.skipif(os.name != "posix", reason="symbolic links and permission bits")
def test_a_link_stays_a_link_and_permissions_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "shared" / "real.lock", tmp_path / "toolcrib.lock"
    real.parent.mkdir()
    write_lock(real, holding("a.x"))
    assert real.stat().st_mode & 0o777 == 0o644
    real.chmod(0o640)
    link.symlink_to(real)
    update_lock(link, adding("a.y"))
    assert link.is_symlink()
    assert (read_lock(real), real.stat().st_mode & 0o777) == (holding("a.x", "a.y"), 0o640)


@pytest.mark.skipif(os.name != "posix", reason="symbolic links")
def test_two_names_of_one_lock_are_one_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "_WAIT_S", 0.0)
    real, link = tmp_path / "shared" / "real.lock", tmp_path / "toolcrib.lock"
    link.symlink_to(real)
    with locked(real), pytest.raises(CatalogError):
        update_lock(link, adding("a.x"))


@pytest.mark.skipif(os.name != "posix", reason="symbolic links")
def test_a_circle_of_links_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for use in (lambda: read_lock(tmp_path / "a"), lambda: write_lock(tmp_path / "a", holding("a.x"))):
        with pytest.raises(CatalogError):
            use()


def test_a_change_that_fails_leaves_the_lock_as_it_was_and_free(tmp_path: Path) -> None:
    lock = tmp_path / "toolcrib.lock"
    write_lock(lock, holding("a.x"))

    def fails(_lock: Lock) -> Lock:
        raise KeyError("no")

    with pytest.raises(KeyError):
        update_lock(lock, fails)
    assert read_lock(lock) == holding("a.x")
    update_lock(lock, lambda _: Lock())
    assert read_lock(lock) == Lock()


def test_a_server_comes_back_as_it_was_pinned(tmp_path: Path) -> None:
    pin = ServerPin(
        provenance={"kind": "npm", "package": "x", "version": "1.0.0", "arguments": ["-y"]},
        instructions=DIGEST,
        protocol_version="2026-07-28",
        capabilities={"tools": {"listChanged": True}},
        signatures={"ada": "c2ln"},
    )
    tool = ToolPin(digest=DIGEST, fields={"name": "0" * 16}, signatures={"ada": "c2ln"})
    lock = Lock(tools={"s.a": tool}, servers={"s": pin})
    write_lock(tmp_path / "toolcrib.lock", lock)
    assert read_lock(tmp_path / "toolcrib.lock") == lock


def test_a_lock_of_digests_alone_is_read_and_written_anew_by_the_next_change(tmp_path: Path) -> None:
    path = tmp_path / "toolcrib.lock"
    path.write_text(f'{{"version": 1, "tools": {{"a.x": {{"digest": "{DIGEST}"}}}}}}', encoding="utf-8")
    assert read_lock(path) == holding("a.x")
    update_lock(path, adding("a.y"))
    assert '"version": 2' in path.read_text(encoding="utf-8")
    assert read_lock(path) == holding("a.x", "a.y")
