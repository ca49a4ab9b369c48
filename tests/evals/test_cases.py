"""Case files: what is read, and what is refused with its line and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evals.making import write_lines
from toolcrib.errors import ConfigError
from toolcrib.evals.cases import case_of, read_cases

WHOLE = {
    "id": "a",
    "task": "give the money back",
    "queries": ["refund"],
    "caller": {"subject": "ann", "scopes": ["money"]},
    "expect": [["shop.refund", "shop.issue_refund"], ["mail.send"]],
    "forbid": ["shop.delete"],
    "tags": ["money"],
    "candidates": ["mail.send"],
    "arguments": {"mail.send": {"to": "ann"}},
    "check": "the order is refunded",
    "note": "asked often",
}


def test_every_field_is_read_and_written_again(tmp_path: Path) -> None:
    (case,) = read_cases(write_lines(tmp_path / "cases.jsonl", [WHOLE]))
    assert case.expect == (frozenset({"shop.refund", "shop.issue_refund"}), frozenset({"mail.send"}))
    assert (case.caller, case.forbid, case.tags) == (WHOLE["caller"], {"shop.delete"}, ("money",))
    assert case.where == "cases.jsonl:1"
    assert case_of(case.to_row(), where=case.where) == case


def test_null_says_that_no_tool_fits_and_one_tool_may_stand_alone() -> None:
    assert case_of({"id": "a", "task": "knit", "expect": None}, where="x").expect is None
    assert case_of({"id": "a", "task": "t", "expect": ["s.t"]}, where="x").expect == (frozenset({"s.t"}),)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"id": "b", "task": "t"}', "line 2: expect: is missing (null says that no tool fits)"),
        ('{"id": "b", "task": "t", "expcet": [["s.t"]]}', '"expcet" is no field of a case; did you mean "expect"?'),
        ('{"id": "b", "task": "t", "expect": []}', "line 2: expect: an empty list asks for nothing"),
        ('{"id": "b", "task": "t", "expect": [[]]}', "line 2: expect: a capability without a tool"),
        ('{"id": "b", "task": "t", "expect": "s.t"}', "line 2: expect: must be null, or a list of capabilities"),
        ('{"id": "b", "task": "", "expect": null}', "line 2: task: must be a text with something in it"),
        ('{"id": 4, "task": "t", "expect": null}', "line 2: id: must be a text"),
        ('{"id": "b", "task": "t", "expect": null, "caller": 4}', "line 2: caller: must be a profile's name"),
        ('{"id": "a", "task": "t", "expect": null}', 'line 2: id: "a" stands on line 1, too'),
        ("{", "line 2: is not JSON"),
        ("[]", "line 2: a case is a JSON object"),
    ],
    ids=["no-expect", "misspelled", "empty", "no-tool", "bare", "no-task", "id", "caller", "twice", "json", "list"],
)
def test_a_wrong_line_is_refused_with_its_number_and_field(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('{"id": "a", "task": "t", "expect": null}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(ConfigError) as fault:
        read_cases(path)
    assert told in fault.value.what
    assert fault.value.where == str(path)


def test_all_wrong_lines_are_told_at_once(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "cases.jsonl", [{"id": str(n), "task": "t", "wrong": 1} for n in range(30)])
    with pytest.raises(ConfigError) as fault:
        read_cases(path)
    assert "line 1: " in fault.value.what
    assert "line 10: " in fault.value.what
    assert "and 40 more" in fault.value.what


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", None], ids=["empty", "not-utf8", "missing"])
def test_a_file_without_cases_says_so(tmp_path: Path, body: bytes | None) -> None:
    path = tmp_path / "cases.jsonl"
    if body is not None:
        path.write_bytes(body)
    with pytest.raises(ConfigError):
        read_cases(path)
