"""What a reviewer is shown."""

from __future__ import annotations

import pytest

from toolcrib.review.lint import lint
from toolcrib.review.text import show, strings


def rules(definition: object) -> list[tuple[str, str]]:
    return [(finding.rule, finding.pointer) for finding in lint(definition)]


@pytest.mark.parametrize(
    ("definition", "pointer"),
    [
        ({"description": "read\u200b me"}, "/description"),
        ({"inputSchema": {"properties": {"a": {"description": "x\u202ey"}}}}, "/inputSchema/properties/a/description"),
        ({"inputSchema": {"properties": {"a\u2060": {}}}}, "/inputSchema/properties/a\u2060~key"),
        ({"inputSchema": {"properties": {"a": {"enum": ["ok", "b\U000e0041"]}}}}, "/inputSchema/properties/a/enum/1"),
    ],
    ids=["description", "parameter", "parameter-name", "enum-tag-character"],
)
def test_hidden_characters_are_found_wherever_a_model_reads(definition: object, pointer: str) -> None:
    assert rules(definition) == [("invisible-characters", pointer)]


def test_evidence_shows_what_was_hidden() -> None:
    assert "<U+200B ZERO WIDTH SPACE>" in lint({"description": "read\u200b me"})[0].evidence
    assert show("a\u202eb\n") == "a<U+202E RIGHT-TO-LEFT OVERRIDE>b\n"


@pytest.mark.parametrize(
    "text",
    ["👩\u200d🚀 launches", "می\u200cخواهم", "plain", "naïve café", "½ of x²", "tab\tand\nline", "two\r\nlines"],
    ids=repr,
)
def test_honest_text_has_no_finding(text: str) -> None:
    assert rules({"description": text}) == []


@pytest.mark.parametrize("text", ["safe\rrm -rf", "a\x1b[2Jb", "a\x9bb", "a\bb"], ids=repr)
def test_what_moves_a_terminals_cursor_is_found_and_shown(text: str) -> None:
    assert rules({"description": text}) == [("invisible-characters", "/description")]
    assert show(text).isprintable()


def test_letters_in_disguise_are_found() -> None:
    assert rules({"description": "ｉｇｎｏｒｅ previous"}) == [("disguised-letters", "/description")]


def test_every_string_is_read_once_with_its_pointer() -> None:
    found = dict(strings({"a": {"b/c": ["x", {"d": "y"}]}}))
    assert found["/a/b~1c/0"] == "x"
    assert found["/a/b~1c/1/d"] == "y"
