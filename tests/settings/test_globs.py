"""Globs that match nothing are told once the tools are known."""

from __future__ import annotations

from fnmatch import translate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.settings import load_settings, unmatched_rules
from toolcrib.settings.globs import glob_fault

IDS = ("github.create_issue", "github.get_issue", "time.now")


def warnings_of(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "toolcrib.toml").write_text(text, encoding="utf-8")
    return unmatched_rules(load_settings(folder), IDS)


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        ("github", "write github.*"),
        ("githb.*", "did you mean github?"),
        ("github.create_isue", "did you mean github.create_issue?"),
        ("GitHub.*", "upper and lower case"),
        ("github.{get,create}_*", "braces"),
        ("*.delete_*", "toolcrib review"),
    ],
)
def test_a_glob_without_a_tool_is_told_with_line_and_advice(tmp_path: Path, pattern: str, advice: str) -> None:
    text = f'[[tools]]\nmatch = "time.*"\nrisk = "read"\n[[tools]]\nrisk = "read"\nmatch = "{pattern}"\n'
    (warning,) = warnings_of(tmp_path, text)
    assert warning.startswith(f"toolcrib.toml:6: [[tools]] match `{pattern}`")
    assert advice in warning


def test_globs_outside_of_tool_rows_and_named_tools_count_too(tmp_path: Path) -> None:
    text = (
        '[[tools]]\nmatch = "time.now"\nreplaced_by = "time.then"\n'
        '[fallback]\ntools = ["time.*",\n"x.*"]\n'
        '[[resources]]\ntype = "T"\ntools = "y.*"\nargument = "/a"\nlookup_tool = "time.owner"\ntenant = "/t"\n'
    )
    assert [w.split(":")[1] for w in warnings_of(tmp_path, text)] == ["6", "9", "3", "11"]


def test_an_alias_that_is_a_tool_s_own_id_is_told(tmp_path: Path) -> None:
    text = '[[tools]]\nmatch = "time.now"\naliases = ["time.before", "github.create_issue"]\n'
    (warning,) = warnings_of(tmp_path, text)
    assert warning.startswith("toolcrib.toml:3: the alias `github.create_issue` is a tool's own id")


def test_globs_that_match_are_silent(tmp_path: Path) -> None:
    text = '[[tools]]\nmatch = "*.[gc]*_issue"\nrisk = "read"\n[[tools]]\nmatch = "time.now"\nrisk = "read"\n'
    assert warnings_of(tmp_path, text) == ()


@pytest.mark.parametrize("pattern", ["", "  ", " a", "a\n", "[", "a[", "a[]", "a[!]", "[a]b[", "[!a"])
def test_a_glob_that_cannot_be_meant_is_a_fault(pattern: str) -> None:
    assert glob_fault(pattern)


@given(st.text(st.sampled_from("a]!*?"), max_size=5), st.text(st.sampled_from("a]!*?"), max_size=5))
def test_a_bracket_is_open_exactly_where_fnmatch_takes_it_literally(before: str, after: str) -> None:
    pattern = f"{before}[{after}"
    assert bool(glob_fault(pattern)) == (r"\[" in translate(pattern))
