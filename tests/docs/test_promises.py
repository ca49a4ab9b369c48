"""Every test that a paper names exists: a promise whose test was renamed or removed is noticed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`")
PAGES = sorted((ROOT / "docs").glob("*.md"))


def named_tests(page: Path) -> list[tuple[str, str]]:
    """(file, function or "") for each test that the page names; `::name` alone belongs to the file before it."""
    found: list[tuple[str, str]] = []
    file = ""
    for match in NAMED.finditer(page.read_text(encoding="utf-8")):
        file = match[1] or file
        if match[1] or match[2]:
            found.append((file, match[2] or ""))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tests_that_a_paper_names_exist(page: Path) -> None:
    missing = [
        f"{file}::{name}"
        for file, name in named_tests(page)
        if not (ROOT / file).is_file() or (name and name not in functions_of(ROOT / file))
    ]
    assert not missing


def functions_of(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_invariant_has_a_test_in_the_security_page() -> None:
    rows = (ROOT / "docs" / "security.md").read_text(encoding="utf-8").splitlines()
    for number in range(1, 13):
        assert any(row.startswith(f"| I{number} ") and "::test_" in row for row in rows), f"I{number}"
