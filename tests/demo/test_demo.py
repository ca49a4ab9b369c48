"""The demo with stand-in servers, so without the network: the story holds, and a broken promise is told."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "demo.py"
STAND_IN = Path(__file__).parent / "stand_in.py"


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("toolcrib_demo_script", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stand_ins(_folder: Path) -> dict[str, list[str]]:
    return {name: [sys.executable, str(STAND_IN), name] for name in ("time", "git")}


def test_the_demo_s_story_holds_from_refresh_to_the_last_trace(
    demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = demo.main(tmp_path, installers=[stand_ins])
    told = capsys.readouterr()
    assert status == 0, told.err
    assert told.out.count("[ok]") == 9
    assert "$ toolcrib call git.git_commit" in told.out
    assert "claude mcp add" in told.out and '"mcpServers"' in told.out


def test_a_broken_promise_ends_the_demo_with_a_failure(
    demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(demo.CALLERS["intern"], "scopes", ["clock", "git.read", "git.write"])
    assert demo.main(tmp_path, installers=[stand_ins]) == 1
    assert "expected: the intern reaches" in capsys.readouterr().err


def test_without_node_the_demo_says_so_and_goes_on(
    demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo.shutil, "which", lambda _name: None)
    assert demo.install_node_servers(tmp_path) == {}
    assert "NODE IS NOT INSTALLED" in capsys.readouterr().out


def test_an_installation_is_used_again_unless_what_is_wanted_changed(demo: ModuleType, tmp_path: Path) -> None:
    demo._mark_installed(tmp_path, ["a-server"])
    assert demo._installed(tmp_path, ["a-server"])
    assert not demo._installed(tmp_path, ["a-server", "another"])
    assert not demo._installed(tmp_path / "elsewhere", ["a-server"])


def test_a_failed_installation_names_the_command_and_what_it_said(demo: ModuleType) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no such package')"]
    with pytest.raises(demo.DemoError, match=r"installing it failed .*\n.*no such package"):
        demo.run(command, what="installing it")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_crib_is_made_fresh_and_its_rows_fit_the_servers(demo: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "leftover").mkdir()
    commands = {name: [f"bin/{name}"] for name in ("time", "git", "fetch", "filesystem", "memory")}
    demo.write_crib(tmp_path, commands)
    assert not (tmp_path / "leftover").exists()
    config = tomllib.loads((tmp_path / "toolcrib.toml").read_text("utf-8"))
    assert [server["id"] for server in config["servers"]] == list(commands)
    read = [row["match"] for row in config["tools"] if row.get("risk") == "read"]
    writing = ["git_commit", "git_add", "git_reset", "git_checkout", "git_create_branch"]
    assert not any(fnmatchcase(f"git.{tool}", match) for tool in writing for match in read)
    writing = ["write_file", "edit_file", "create_directory", "move_file"]
    assert not any(fnmatchcase(f"filesystem.{tool}", match) for tool in writing for match in read)
    assert json.loads((tmp_path / "callers" / "intern.json").read_text("utf-8"))["subject"] == "ira"
