"""Labelled folders: foreign files, read as far as they can be, with what was left out said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evals.making import shop_set, write_lines, write_set
from toolcrib.errors import ConfigError
from toolcrib.evals.folders import is_set, read_folder


def test_labels_become_capabilities_and_splits_become_tags(tmp_path: Path) -> None:
    folder = read_folder(shop_set(tmp_path / "shop"))
    by_id = {case.case_id: case for case in folder.cases}
    assert folder.name == "shop"
    assert by_id["both"].expect == (frozenset({"sky.get_forecast"}), frozenset({"mail.send_message"}))
    assert by_id["both"].tags == ("multi",)
    assert by_id["none"].expect is None
    assert by_id["narrow"].candidates == {"sky.get_tides", "mail.list_folders"}
    assert [tool.tool_id for tool in folder.tools] == sorted(tool.tool_id for tool in folder.tools)


def test_ids_may_be_anything_and_names_may_repeat(tmp_path: Path) -> None:
    path = tmp_path / "odd"
    path.mkdir()
    write_lines(
        path / "tools.jsonl",
        [
            {"tool_id": "GET /movie/{id}", "name": "get", "server": "tmdb", "description": None, "input_schema": None},
            {"tool_id": "spotify#2", "name": "get", "server": "spotify", "description": "Get a song."},
            {"tool_id": "spotify#2", "name": "get", "server": "spotify", "description": "The same id again."},
        ],
    )
    write_lines(path / "queries.jsonl", [{"query_id": 7, "query": "a film"}, {"query_id": 8, "query": "?"}])
    write_lines(
        path / "qrels.jsonl", [{"query_id": 7, "tool_id": "GET /movie/{id}"}, {"query_id": 7, "tool_id": "gone"}]
    )
    folder = read_folder(path)
    assert [tool.tool_id for tool in folder.tools] == ["GET /movie/{id}", "spotify#2"]
    assert [case.case_id for case in folder.cases] == ["7"]
    assert any("1 queries with neither labels nor expect_none" in note for note in folder.notes)
    assert any("of tools with one id the first was taken" in note for note in folder.notes)


def test_labels_on_tools_that_are_not_there_are_kept_and_said(tmp_path: Path) -> None:
    path = write_set(
        tmp_path / "lost", queries=[{"query_id": "q", "query": "pay"}], labels=[("q", "shop.no_such_tool", 0)]
    )
    folder = read_folder(path)
    assert folder.cases[0].expect == (frozenset({"shop.no_such_tool"}),)
    assert any("lost at the registry" in note for note in folder.notes)


def test_a_set_of_tasks_that_nothing_fits_needs_no_labels(tmp_path: Path) -> None:
    queries = [{"query_id": "n", "query": "knit", "expect_none": True, "candidate_tool_ids": []}]
    path = write_set(tmp_path / "none", queries=queries, labels=[])
    (path / "qrels.jsonl").unlink()
    (case,) = read_folder(path).cases
    assert (case.expect, case.candidates) == (None, frozenset())


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    path = shop_set(tmp_path / "shop")
    assert is_set(path)
    assert not is_set(tmp_path)
    (path / "queries.jsonl").rename(path / "asked.jsonl")
    with pytest.raises(ConfigError, match=r"no queries\.jsonl"):
        read_folder(path)
    (path / "asked.jsonl").rename(path / "queries.jsonl")
    (path / "qrels.jsonl").write_text('{"query_id": "refund"}\n', encoding="utf-8")
    with pytest.raises(ConfigError) as fault:
        read_folder(path)
    assert fault.value.where.endswith("qrels.jsonl:1")
    assert "tool_id" in fault.value.what
