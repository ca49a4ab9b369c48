"""`tools/list` dumps as any client saves them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolcrib.errors import CatalogError
from toolcrib.review.dumps import read_dumps, server_id_of

ONE, TWO = {"name": "one"}, {"name": "two"}


def names(folder: Path, body: Any) -> list[str]:
    file = folder / "shop.tools.json"
    file.write_text(json.dumps(body), encoding="utf-8")
    (dump,) = read_dumps([file])
    assert dump.server_id == "shop"
    return [tool.name for tool in dump.tools]


@pytest.mark.parametrize(
    "body",
    [
        [ONE, TWO],
        {"tools": [ONE, TWO]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [ONE, TWO]}},
        [{"result": {"tools": [ONE]}}, {"result": {"tools": [TWO]}}],
    ],
    ids=["array", "object", "answer", "pages"],
)
def test_each_shape_gives_the_same_tools(tmp_path: Path, body: Any) -> None:
    assert names(tmp_path, body) == ["one", "two"]


def test_a_tool_that_holds_tools_is_a_tool_and_no_page(tmp_path: Path) -> None:
    assert names(tmp_path, [{"name": "evil", "tools": []}]) == ["evil"]
    assert names(tmp_path, [{"name": "evil", "result": {"tools": []}}]) == ["evil"]
    assert names(tmp_path, [{"tools": []}, {"name": "evil", "tools": []}]) == ["#0", "evil"]


def test_the_instructions_of_every_page_are_kept(tmp_path: Path) -> None:
    pages = [{"result": {"tools": [ONE], "instructions": "Read me."}}, {"tools": [TWO], "instructions": "And me."}]
    (tmp_path / "a.json").write_text(json.dumps(pages), encoding="utf-8")
    (dump,) = read_dumps([tmp_path])
    assert dump.instructions == "Read me.\nAnd me."


def test_a_mark_of_byte_order_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([ONE]), encoding="utf-8-sig")
    (dump,) = read_dumps([tmp_path])
    assert [tool.name for tool in dump.tools] == ["one"]


def test_malformed_entries_are_kept_and_go_by_their_place(tmp_path: Path) -> None:
    assert names(tmp_path, [ONE, 7, {"name": 3}, {"name": "one"}]) == ["one", "#1", "#2", "one"]


def test_a_folder_is_all_its_dumps_with_their_instructions(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text('{"tools": [], "instructions": "Read me."}', encoding="utf-8")
    (tmp_path / "a.json").write_text("[]", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no", encoding="utf-8")
    assert [(dump.server_id, dump.instructions) for dump in read_dumps([tmp_path])] == [("a", ""), ("b", "Read me.")]


@pytest.mark.parametrize("text", ["no json", '"text"', '{"servers": []}', '{"tools": {}}', "[" * 100_000], ids=range(5))
def test_what_holds_no_list_of_tools_is_a_fault(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CatalogError) as caught:
        read_dumps([file])
    assert caught.value.where == str(file)


def test_a_missing_path_and_an_empty_folder_are_faults(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(CatalogError):
            read_dumps([path])


def test_the_server_is_named_by_the_file() -> None:
    assert server_id_of(Path("x/azure__mcp.tools.json")) == "azure__mcp"
