"""The parts of proofs: smallest counterexamples, blanked ids, sample arguments, harmless configurations."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from toolcrib.catalog.digest import definition_digest
from toolcrib.types import ListedTool, Publication
from toolcrib.verify.asking import comparable
from toolcrib.verify.differences import excerpt, first_difference, smallest
from toolcrib.verify.samples import sample_arguments
from toolcrib.verify.scratch import RETRIEVAL_FILES, exact_match, harmless, toml_of
from toolcrib.verify.world import Edit, EditKind, World


@pytest.mark.parametrize("culprits", [{3}, {0, 9}, {1, 4, 7}], ids=str)
def test_smallest_keeps_exactly_what_is_needed(culprits: set[int]) -> None:
    found = smallest(range(10), lambda part: culprits <= set(part), max_trials=1_000)
    assert set(found) == culprits


def test_smallest_stops_when_its_trials_are_spent() -> None:
    trials: list[int] = []

    def breaks(part: Any) -> bool:
        trials.append(len(part))
        return 77 in part

    assert 77 in smallest(range(1_000), breaks, max_trials=5)
    assert len(trials) <= 5


def test_differences_are_told_with_their_place() -> None:
    assert first_difference(b"abc", b"abd") == 2
    assert first_difference(b"abc", b"abcd") == 3
    assert excerpt(b"x" * 200 + b"here" + b"y" * 200, 200) == f"…{'x' * 60}here{'y' * 56}…"


def test_only_random_ids_are_blanked_at_any_depth_of_quoting() -> None:
    one, two = "0" * 32, "f" * 32
    nested = rb'{"text": "{\"trace_id\":\"%s\"}", "approval_id": "%s"}'
    assert comparable(nested % (one.encode(), two.encode())) == comparable(nested % (two.encode(), one.encode()))
    told = b'{"message": "%s"}'
    assert comparable(told % one.encode()) != comparable(told % two.encode())


def test_sample_arguments_hold_the_required_ones_with_their_types() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 5},
            "kind": {"enum": ["b", "a"]},
            "deep": {"$ref": "#/$defs/deep"},
            "left": {"type": "string"},
            "many": {"type": "array", "items": {"type": "number"}, "minItems": 2},
        },
        "required": ["n", "kind", "deep", "many"],
        "$defs": {"deep": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}},
    }
    assert sample_arguments(schema) == {"n": 5, "kind": "b", "deep": {"on": True}, "many": [1.0, 1.0]}


@pytest.mark.parametrize("schema", [{}, {"properties": 3, "required": 4}, {"$ref": "#/x"}, {"type": []}], ids=str)
def test_sample_arguments_of_any_schema_are_an_object(schema: dict[str, Any]) -> None:
    assert sample_arguments(schema) == {}


def test_a_harmless_configuration_reaches_nobody_and_holds_no_secret() -> None:
    document = tomllib.loads(
        """
        [crib]
        name = "x"
        store = "/srv/store"
        policy = "mine.cedar"
        [approvals]
        webhook = "https://hooks.example/x"
        [[vault]]
        name = "v"
        secret = "env:V"
        [[servers]]
        id = "s"
        namespace = "n"
        command = ["run", "me"]
        env = { KEY = "env:SECRET" }
        [[resources]]
        type = "Order"
        tools = "*"
        argument = "/id"
        url = "https://owner.example/{id}"
        tenant = "/tenant"
        [gate]
        calls_per_minute = 3
        approval_ttl_s = 5.5
        [gate.circuit]
        failures = 2
        """
    )
    made = tomllib.loads(toml_of(harmless(document, has_policy=True)))
    text = str(made)
    for word in ("example", "SECRET", "env:", "run", "/srv", "mine.cedar", "calls_per_minute"):
        assert word not in text
    assert made["servers"] == [{"id": "s", "namespace": "n", "transport": "file", "path": "nobody.tools.json"}]
    assert made["gate"] == {"approval_ttl_s": 5.5, "duplicate_window_s": 0.0, "circuit": {"failures": 0}}
    assert made["crib"]["name"] == "x"


@pytest.mark.parametrize(
    ("embedder", "files", "left"),
    [
        ("bundled", ("learned", "calibration"), RETRIEVAL_FILES),
        ("bundled", ("learned",), {"learned": RETRIEVAL_FILES["learned"]}),
        ("bundled", (), {}),
        ("model", ("learned", "calibration"), {}),
    ],
    ids=["both", "one cannot be read", "none can", "made for a model that is not asked"],
)
def test_what_was_learned_and_calibrated_comes_along_as_a_copy(
    embedder: str, files: tuple[str, ...], left: dict[str, str]
) -> None:
    own = {"embedder": embedder, "learned": "/srv/learned", "calibration": "/srv/c.json", "model": {"path": "/srv/m"}}
    made = harmless({"retrieval": own}, has_policy=False, files=files)["retrieval"]
    assert made == {"embedder": "bundled", **left}


def test_toml_that_is_written_reads_back_as_the_same_document() -> None:
    document = {
        "top": 1,
        "a": {"b": {"c": [1, 2.5, True, 'q"\x7f\\'], "d e": "é"}},
        "rows": [{"x": {"y": []}}, {"x": {}}],
        "empty": [],
    }
    assert tomllib.loads(toml_of(document)) == document


def test_exact_match_escapes_what_a_glob_reads() -> None:
    assert exact_match("a.b*[c]?") == "a.b[*][[]c][?]"


def listed(name: str) -> ListedTool:
    definition = {"name": name, "description": name}
    return ListedTool(server_id="s", name=name, definition=definition, digest=definition_digest(definition))


def world(*names: str, approved: tuple[str, ...]) -> World:
    tools = tuple(listed(name) for name in names)
    return World(
        document={"servers": [{"id": "s"}], "tools": [{"match": "*"}]},
        policy=None,
        publication=Publication(publication_id="p", at="", servers=(), tools=tools),
        approved={f"s.{t.name}": t.digest for t in tools if t.name in approved},
        server_pins={},
        reviews=(),
        profiles={},
    )


def test_edits_change_the_publication_the_lock_and_the_rows() -> None:
    before = world("a", "b", "c", "d", "e", approved=("a", "b", "c", "d"))
    after = before.changed(
        [
            Edit(kind=EditKind.REMOVED, tool_id="s.a"),
            Edit(kind=EditKind.CHANGED, tool_id="s.b", definition={"description": "new"}),
            Edit(kind=EditKind.QUARANTINED, tool_id="s.c"),
            Edit(kind=EditKind.DESCRIBED, tool_id="s.d", row={"preload": True}),
            Edit(kind=EditKind.APPROVED, tool_id="s.e"),
            Edit(kind=EditKind.ADDED, tool_id="t.f", definition={}, row={"owner": "x"}),
        ]
    )
    assert [f"{t.server_id}.{t.name}" for t in after.publication.tools] == ["s.b", "s.c", "s.d", "s.e", "t.f"]
    assert sorted(after.approved) == ["s.b", "s.d", "s.e", "t.f"]
    assert after.approved["s.b"] != before.approved["s.b"]
    assert after.document["tools"][1:] == [{"match": "s.d", "preload": True}, {"match": "t.f", "owner": "x"}]
    assert [row["id"] for row in after.document["servers"]] == ["s", "t"]
    assert before.changed([]).approved == before.approved
