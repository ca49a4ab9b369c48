"""What the papers show runs: the Python of README and of the library page, and the quickstart's configuration."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from toolcrib.settings import load_settings

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    return [code for kind, code in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")) if kind == language]


@pytest.mark.parametrize("page", ["README.md", "docs/api.md"])
def test_the_python_of_the_papers_runs_in_the_freight_example(page: str, tmp_path: Path) -> None:
    folder = tmp_path / "freight"
    shutil.copytree(ROOT / "examples" / "freight", folder, ignore=shutil.ignore_patterns(".toolcrib", "*.lock"))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-c", blocks(page, "python")[0]],
        cwd=folder, capture_output=True, text=True, timeout=120, env={**os.environ, "PATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("selected ['freight.customs_"), done.stdout


def test_the_configuration_of_the_quickstart_loads(tmp_path: Path) -> None:
    (tmp_path / "toolcrib.toml").write_text("\n".join(blocks("docs/quickstart.md", "toml")), encoding="utf-8")
    assert [server.server_id for server in load_settings(tmp_path).servers] == ["time"]


def test_the_policy_of_the_policy_page_is_valid() -> None:
    from toolcrib.policy.engine import PolicyEngine

    for text in blocks("docs/policy.md", "cedar"):
        PolicyEngine.from_text(text, source="docs/policy.md")
