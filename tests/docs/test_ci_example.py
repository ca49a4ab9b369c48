"""The workflow of examples/ci: least permissions, pinned actions, and a script that keeps the command's exit code."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from toolcrib.catalog.lock import read_lock

ROOT = Path(__file__).parents[2]
WORKFLOW = (ROOT / "examples" / "ci" / "toolcrib-lock.yml").read_text(encoding="utf-8")


def script() -> str:
    """The shell lines of the step that runs the check."""
    lines = WORKFLOW[WORKFLOW.index("        run: |") :].splitlines()[1:]
    return "\n".join(line.removeprefix(" " * 10) for line in lines)


def test_it_may_read_the_repository_and_nothing_else() -> None:
    (granted,) = re.findall(r"^permissions:\n((?: .*\n)+)", WORKFLOW, re.MULTILINE)
    assert [line.split("#")[0].strip() for line in granted.splitlines()] == ["contents: read"]
    assert "persist-credentials: false" in WORKFLOW


def test_every_action_is_pinned() -> None:
    used = re.findall(r"uses: (\S+)", WORKFLOW)
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|[0-9a-f]{40})", action) for action in used)


@pytest.mark.skipif(os.name != "posix", reason="the workflow's script is for a POSIX shell")
@pytest.mark.parametrize(
    ("code", "told"), [(0, ""), (1, "::error file=toolcrib.lock::2 differences"), (3, "::error::")]
)
def test_the_step_ends_as_the_command_does_and_sums_up(tmp_path: Path, code: int, told: str) -> None:
    command = tmp_path / "toolcrib"
    printed = "NEW mail/a\\nNEW mail/<b>" if code == 1 else ""
    command.write_text(f"#!/bin/sh\n[ -z '{printed}' ] || printf '{printed}\\n'\nexit {code}\n", encoding="utf-8")
    command.chmod(0o755)
    summary = tmp_path / "summary.md"
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-e", "-c", script()],
        cwd=tmp_path,
        env={"PATH": path, "GITHUB_STEP_SUMMARY": str(summary)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    assert told in done.stdout
    body = summary.read_text(encoding="utf-8").splitlines()
    assert body[0].endswith(f"exit {code}")
    assert all(line.startswith("    ") for line in body[2:])


def test_the_lock_of_the_page_is_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "lock.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (tmp_path / "toolcrib.lock").write_text(block, encoding="utf-8")
    lock = read_lock(tmp_path / "toolcrib.lock")
    assert lock.servers["mail"].provenance["version"] == "1.0.0"
    assert list(lock.tools) == ["mail.send"]
