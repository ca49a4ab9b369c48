"""`toolcrib refresh`: what it says of servers that failed, of empty lists and of credentials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toolcrib.cli.main import app
from toolcrib.errors import ConfigError

from ..flow.worlds import tool


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = "".join(
        f'[[servers]]\nid = "{server_id}"\ntransport = "file"\npath = "{server_id}.json"\n' for server_id in ("a", "b")
    )
    (tmp_path / "toolcrib.toml").write_text(f'[crib]\nname = "test"\n{rows}', encoding="utf-8")
    write(tmp_path, "a", [tool("one"), tool("two")])
    write(tmp_path, "b", [tool("three")])
    return tmp_path


def write(folder: Path, server_id: str, tools: list[Any]) -> None:
    (folder / f"{server_id}.json").write_text(json.dumps({"tools": tools}), encoding="utf-8")


def run(folder: Path, *words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["-C", str(folder), "refresh", *words])
    assert done.exit_code == code, (done.output, done.exception)
    return json.loads(done.stdout) if "--json" in words else done


def test_an_empty_list_keeps_the_last_one_until_the_operator_accepts_it(folder: Path) -> None:
    run(folder)
    write(folder, "a", [])
    told = run(folder, code=1).stderr
    assert "partial, its last list is kept: a: listed no tools, where it had 2" in told
    assert "toolcrib refresh --server a --accept-empty" in told
    report = run(folder, "--json", code=1)
    assert (report["removed"], report["partial"], report["n_tools"]) == ([], ["a"], 3)
    report = run(folder, "--server", "a", "--accept-empty", "--json")
    assert (report["removed"], report["failed"], report["n_tools"]) == (["a.one", "a.two"], {}, 1)


def test_accepting_emptiness_wants_to_know_of_whom(folder: Path) -> None:
    done = CliRunner().invoke(app, ["-C", str(folder), "refresh", "--accept-empty"])
    assert isinstance(done.exception, ConfigError)


def test_a_server_that_failed_is_told_apart_from_one_whose_list_broke_off(folder: Path) -> None:
    run(folder)
    (folder / "b.json").unlink()
    told = run(folder, code=1).stderr
    assert "failed: b:" in told and "partial" not in told
    report = run(folder, "--json", code=1)
    assert (report["partial"], list(report["failed"]), report["removed"]) == ([], ["b"], [])


def test_each_list_says_with_which_credential_it_was_taken(folder: Path) -> None:
    assert "listed without a credential: a, b" in run(folder).stderr
    assert run(folder, "--json")["credentials"] == {"a": "", "b": ""}


def test_what_was_taken_before_is_not_told_as_taken_now(folder: Path) -> None:
    run(folder)
    (folder / "b.json").unlink()
    assert run(folder, "--json", code=1)["credentials"] == {"a": ""}
