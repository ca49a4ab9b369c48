"""`toolcrib init` and what it leaves in the folder."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from toolcrib.cli.main import app


def init(folder: Path, *more: str) -> list[str]:
    done = CliRunner().invoke(app, ["-C", str(folder), "init", "--json", *more])
    assert done.exit_code == 0, done.output
    return [Path(path).name for path in json.loads(done.stdout)["written"]]


def test_what_must_not_be_shared_is_kept_out_of_version_control(tmp_path: Path) -> None:
    assert init(tmp_path) == ["toolcrib.toml", "policy.cedar", ".gitignore"]
    ignored = (tmp_path / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {".toolcrib/", "*.pem"} <= set(ignored)
    assert "toolcrib.lock" not in ignored


def test_a_gitignore_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine\n", encoding="utf-8")
    assert init(tmp_path, "--force") == ["toolcrib.toml", "policy.cedar"]
    assert (tmp_path / ".gitignore").read_text(encoding="utf-8") == "mine\n"
