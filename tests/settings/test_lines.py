"""Which line a key stands on."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.settings.lines import KeyPath, lines_of

TEXT = (
    '''\
# comment with [brackets] = "x"
title = """
[[servers]]
id = "not a key"
"""
[crib] # comment
name = "a # b"
"quoted.key" = 'c'
dotted.inner . deep = 1

[[servers]]
id = "one"
env = { A = "1", "B C" = { D = [1, 2] } }
args = [
  "first", # a comment, with [ and "
  "second",
  ["nested",
   "deeper"],
]
[servers.headers]
X = '''
    + """'''
multi ' line''''"""
    + """
[[servers]]
id = "two"
[[servers.parts]]
p = 1
[[servers.parts]]
p = 2
when = 1979-05-27 07:32:00
[identity]
local.subject = "me"
"""
)
EXPECTED = {
    ("title",): 2,
    ("crib",): 6,
    ("crib", "name"): 7,
    ("crib", "quoted.key"): 8,
    ("crib", "dotted", "inner", "deep"): 9,
    ("servers",): 11,
    ("servers", 0): 11,
    ("servers", 0, "env", "A"): 13,
    ("servers", 0, "env", "B C", "D", 1): 13,
    ("servers", 0, "args", 0): 15,
    ("servers", 0, "args", 1): 16,
    ("servers", 0, "args", 2, 1): 18,
    ("servers", 0, "headers"): 20,
    ("servers", 0, "headers", "X"): 21,
    ("servers", 1): 23,
    ("servers", 1, "id"): 24,
    ("servers", 1, "parts", 0, "p"): 26,
    ("servers", 1, "parts", 1): 27,
    ("servers", 1, "parts", 1, "when"): 29,
    ("identity", "local", "subject"): 31,
}


@pytest.mark.parametrize(("path", "line"), EXPECTED.items(), ids=[str(path) for path in EXPECTED])
def test_a_key_has_the_line_it_stands_on(path: KeyPath, line: int) -> None:
    assert lines_of(TEXT, source="x.toml").by_path[path] == line


def paths_of(value: Any, path: KeyPath = ()) -> set[KeyPath]:
    """Every path of a parsed document."""
    found = {path} if path else set()
    if isinstance(value, dict):
        return found.union(*(paths_of(inner, (*path, key)) for key, inner in value.items()))
    if isinstance(value, list):
        return found.union(*(paths_of(inner, (*path, number)) for number, inner in enumerate(value)))
    return found


def test_exactly_the_paths_of_the_document_have_lines() -> None:
    assert set(lines_of(TEXT, source="x.toml").by_path) == paths_of(tomllib.loads(TEXT))


def test_a_missing_key_has_the_line_of_its_table() -> None:
    lines = lines_of(TEXT, source="x.toml")
    assert lines.where(("servers", 1, "url")) == "x.toml:23"
    assert lines.where(("nowhere",)) == "x.toml"


keys = st.text(st.sampled_from("ab-_1"), min_size=1, max_size=4)
quoted = st.sampled_from(['"x.y"', '"a\\"b"', "'c d'", '"#"'])
scalars = st.sampled_from(
    ['"a]b"', "'}'", "1", "true", '"""\n# no\n"""', "'''\n[x]\n'''", '"\\"="', "1.5e3", '""', "''", '""""""']
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[\n" + ",\n".join(items) + "]")
        | st.dictionaries(keys, scalars.filter(lambda s: "\n" not in s), max_size=3).map(
            lambda table: "{" + ", ".join(f"{key} = {value}" for key, value in table.items()) + "}"
        )
    ),
    max_leaves=6,
)
tables = st.dictionaries(keys | quoted, values, max_size=4)


@given(top=tables, rows=st.lists(tables, max_size=3))
def test_every_document_is_read_as_the_standard_parser_reads_it(
    top: dict[str, str], rows: list[dict[str, str]]
) -> None:
    blocks = ["\n".join(f"{key} = {value} # end" for key, value in top.items())]
    blocks += ["[[zz.rows]]\n" + "\n".join(f"{key} = {value}" for key, value in row.items()) for row in rows]
    text = "\n".join(blocks)
    lines = lines_of(text, source="x.toml").by_path
    assert set(lines) == paths_of(tomllib.loads(text))
    written = text.split("\n")
    for number in range(len(rows)):
        assert written[lines["zz", "rows", number] - 1] == "[[zz.rows]]"
    for key, value in top.items():
        path = (tomllib.loads(f"k = {key}")["k"],) if key[0] in "'\"" else (key,)
        assert written[lines[path] - 1].startswith(f"{key} = {value.split(chr(10))[0]}")
