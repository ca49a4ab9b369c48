from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.retrieval.making import build, everyone, tool
from toolcrib.errors import IndexFormatError, IndexStaleError, RetrievalError
from toolcrib.retrieval.dense import DenseView, Float32Array, bundled_embedder, quantise
from toolcrib.retrieval.index import Index, index_key
from toolcrib.retrieval.lexical import Terms
from toolcrib.retrieval.storage import write_arrays
from toolcrib.types import Tool

TOOLS = tuple(
    sorted(
        (
            tool("hub.create_issue", "Create an issue.", schema={"properties": {"title": {"description": "Title"}}}),
            tool("hub.get_weather", "Current weather for a city."),
            tool("shop.issue_refund", "Return money to a customer.", keywords=("chargeback",)),
            tool("shop.查询订单", "按编号查询订单"),
        ),
        key=lambda t: t.tool_id,
    )
)
TASK = "give the customer the money back and create an issue"


class Fake:
    """Three dimensions from the length of a text; fails when told to."""

    model_id = "fake-1"
    dim = 3

    def __init__(self, *, documents: bool = True, queries: bool = True, poison: str = "\0") -> None:
        self.documents, self.queries, self.poison = documents, queries, poison

    def embed_documents(self, texts: Sequence[str]) -> Float32Array:
        if not self.documents or any(self.poison in text for text in texts):
            raise RuntimeError("no model")
        return np.array([[len(text), 1, 0] for text in texts], dtype=np.float32)

    def embed_query(self, text: str) -> Float32Array:
        if not self.queries:
            raise RuntimeError("no model")
        return np.array([len(text), 1, 0], dtype=np.float32)


def test_saved_and_loaded_index_answers_the_same(tmp_path: Path) -> None:
    index = build(TOOLS)
    index.save(tmp_path / "one.idx")

    loaded = Index.load(tmp_path / "one.idx", tools=TOOLS, embedder=bundled_embedder())

    assert loaded.key == index.key
    for permitted in (everyone(index), np.array([True, False, True, False])):
        assert loaded.view(permitted).search(TASK) == index.view(permitted).search(TASK)
    assert [path.name for path in tmp_path.iterdir()] == ["one.idx"]


@pytest.mark.parametrize("damage", ["cut", "flip", "foreign", "empty"])
def test_damaged_file_is_a_format_error(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "one.idx"
    build(TOOLS).save(path)
    raw = bytearray(path.read_bytes())
    raw[-200] ^= 1
    path.write_bytes({"cut": bytes(raw[:-300]), "flip": bytes(raw), "foreign": b"PK" * 400, "empty": b""}[damage])

    with pytest.raises(IndexFormatError):
        Index.load(path, tools=TOOLS, embedder=bundled_embedder())


def test_missing_file_is_a_format_error(tmp_path: Path) -> None:
    with pytest.raises(IndexFormatError):
        Index.load(tmp_path / "none.idx", tools=TOOLS, embedder=None)


def test_index_of_other_tools_or_another_model_is_stale(tmp_path: Path) -> None:
    path = tmp_path / "one.idx"
    build(TOOLS).save(path)

    with pytest.raises(IndexStaleError):
        Index.load(path, tools=TOOLS[:-1], embedder=bundled_embedder())
    with pytest.raises(IndexStaleError):
        Index.load(path, tools=TOOLS, embedder=Fake())


def test_key_covers_definitions_metadata_and_model() -> None:
    changed = (tool("hub.create_issue", "Create two issues."), *TOOLS[1:])
    keyword = (*TOOLS[:2], tool("shop.issue_refund", "Return money to a customer.", keywords=("money",)), *TOOLS[3:])
    keys = {index_key(tools, None) for tools in (TOOLS, TOOLS[1:], changed, keyword)} | {index_key(TOOLS, Fake())}

    assert len(keys) == 5
    assert index_key(TOOLS, None) == index_key(tuple(TOOLS), None)


@pytest.mark.parametrize("broken", [Fake(documents=False), Fake(queries=False)], ids=["building", "asking"])
def test_broken_embedder_leaves_lexical_search_and_says_so(broken: Fake) -> None:
    index = Index.build(TOOLS, embedder=broken)

    ranking = index.view(everyone(index)).search("refund a customer")

    assert ranking.degraded
    assert ranking.hits[0].tool_id == "shop.issue_refund"
    assert ranking.hits[0].dense == 0.0


def test_text_that_cannot_be_embedded_costs_its_own_vector_only() -> None:
    index = Index.build(TOOLS, embedder=Fake(poison="weather"))

    ranking = index.view(everyone(index)).search("weather or refund for a customer")

    assert not index.degraded
    assert not ranking.degraded
    dense = {hit.tool_id: hit.dense for hit in ranking.hits}
    assert dense["hub.get_weather"] == 0.0
    assert dense["shop.issue_refund"] > 0.9


def test_whether_the_arm_is_down_is_told_from_permitted_tools_alone() -> None:
    index = Index.build(TOOLS, embedder=Fake(poison="weather"))
    weather = np.array([t.name == "get_weather" for t in TOOLS])
    alone = Index.build([t for t in TOOLS if t.name == "get_weather"], embedder=Fake(poison="weather"))

    assert index.view(weather).search("weather").degraded
    assert alone.view(everyone(alone)).search("weather").degraded


def test_lexical_index_is_not_degraded() -> None:
    index = Index.build(TOOLS, embedder=None)

    assert index.model_id == "none"
    assert not index.view(everyone(index)).search("refund").degraded


def test_empty_catalog_can_be_built_saved_and_asked(tmp_path: Path) -> None:
    index = Index.build((), embedder=bundled_embedder())
    index.save(tmp_path / "none.idx")

    loaded = Index.load(tmp_path / "none.idx", tools=(), embedder=bundled_embedder())

    assert loaded.view(everyone(loaded)).search("refund").hits == ()


def test_progress_ends_with_all_tools() -> None:
    seen: list[tuple[int, int]] = []

    Index.build(TOOLS, embedder=None, on_progress=lambda done, total: seen.append((done, total)))

    assert seen[0] == (0, 4)
    assert seen[-1] == (4, 4)


def test_mask_of_another_length_is_refused() -> None:
    with pytest.raises(RetrievalError):
        build(TOOLS).view(np.ones(3, dtype=np.bool_))


def test_cosines_are_the_same_bits_whatever_else_is_in_the_matrix() -> None:
    rng = np.random.default_rng(1)
    vectors, query = (
        quantise(rng.normal(size=(257, 256)).astype(np.float32)),
        quantise(rng.normal(size=(1, 256)).astype(np.float32))[0],
    )
    whole = DenseView(vectors, np.arange(257)).cosines(query)

    for rows in (np.array([5]), np.array([0, 100, 256]), np.arange(3, 200, 7)):
        assert (DenseView(vectors, rows).cosines(query) == whole[rows]).all()


def test_vector_that_is_not_finite_becomes_no_vector() -> None:
    vectors = quantise(np.array([[np.nan, 1.0], [0.0, 0.0], [-2.0, 1.0]], dtype=np.float32))

    assert vectors.tolist() == [[0, 0], [0, 0], [-127, 64]]


def test_packaged_model_tells_meanings_apart() -> None:
    model = bundled_embedder()

    rows = quantise(
        model.embed_documents(["refund the customer", "give the client the money back", "rain in the mountains"])
    )
    near, far = DenseView(rows, np.arange(3)).cosines(rows[0])[1:]

    assert near > far


def some_tools(n: int, *, changed: frozenset[int] = frozenset()) -> tuple[Tool, ...]:
    nouns = "order refund ticket weather invoice parcel mail report".split()
    made = []
    for i in range(n):
        noun = nouns[i % len(nouns)]
        words = f"Handles the {noun} number {i}." + (f" Revised version {i}, much better." if i in changed else "")
        schema = {"properties": {f"{noun}_id": {"description": f"Which {noun}"}}}
        made.append(tool(f"s{i % 3}.{noun}_{i:03}", words, schema=schema))
    return tuple(sorted(made, key=lambda t: t.tool_id))


def same(one: Index, other: Index) -> bool:
    """All that two indexes hold, compared as bytes."""
    mine, theirs = one._parts.arrays(), other._parts.arrays()
    return one.key == other.key and {name: (a.dtype, a.shape, a.tobytes()) for name, a in mine.items()} == {
        name: (a.dtype, a.shape, a.tobytes()) for name, a in theirs.items()
    }


AFTER = {
    "changed": some_tools(40, changed=frozenset({3, 17})),
    "removed": some_tools(40)[:9] + some_tools(40)[12:],
    "added": some_tools(43),
    "all three": some_tools(44, changed=frozenset({0, 39}))[2:],
    "nothing": some_tools(40),
    "most": some_tools(40, changed=frozenset(range(30))),
    "everything": (),
}


@pytest.mark.parametrize("after", AFTER.values(), ids=AFTER)
@pytest.mark.parametrize("by", ["memory", "file"])
def test_updated_index_equals_one_built_anew(after: tuple[Tool, ...], by: str, tmp_path: Path) -> None:
    model = bundled_embedder()
    before = Index.build(some_tools(40), embedder=model)
    before.save(tmp_path / "one.idx")

    updated = (
        before.updated(after, embedder=model)
        if by == "memory"
        else Index.update_file(tmp_path / "one.idx", tools=after, embedder=model)
    )

    built = Index.build(after, embedder=model)
    assert same(updated, built)
    assert updated.view(everyone(updated)).search("refund 17") == built.view(everyone(built)).search("refund 17")


def test_update_embeds_only_what_changed() -> None:
    asked: list[str] = []

    class Counting(Fake):
        def embed_documents(self, texts: Sequence[str]) -> Float32Array:
            asked.extend(texts)
            return super().embed_documents(texts)

    index = Index.build(some_tools(40), embedder=Counting())
    asked.clear()

    updated = index.updated(some_tools(41, changed=frozenset({5})), embedder=Counting())

    assert len(asked) == 2
    assert same(updated, Index.build(some_tools(41, changed=frozenset({5})), embedder=Fake()))


def test_update_tries_again_what_could_not_be_embedded() -> None:
    index = Index.build(TOOLS, embedder=Fake(poison="weather"))

    updated = index.updated(TOOLS, embedder=Fake())

    assert same(updated, Index.build(TOOLS, embedder=Fake()))


def test_update_with_another_model_is_a_build() -> None:
    lexical = Index.build(TOOLS, embedder=None)

    updated = lexical.updated(TOOLS, embedder=bundled_embedder())

    assert same(updated, build(TOOLS))


def test_update_reports_progress_up_to_all_tools() -> None:
    seen: list[tuple[int, int]] = []
    index = build(some_tools(40))

    index.updated(some_tools(41), embedder=bundled_embedder(), on_progress=lambda *at: seen.append(at))

    assert seen[-1] == (41, 41)


def test_terms_are_found_where_they_lie() -> None:
    terms = sorted({"a", "ab", "order", "örder", "订单", "zz", "b" * 200})
    table = Terms.of(terms)

    assert list(table) == terms
    assert [table.number(term) for term in terms] == list(range(len(terms)))
    assert [table.number(term) for term in ("", "aa", "zzz", "orde", "\ud800")] == [None] * 5
    assert Terms.of([]).number("a") is None


def test_name_of_a_hidden_tool_does_not_take_the_place_of_a_permitted_one() -> None:
    """`crm.export` is the id of a tool that this caller may not know of, and the name of one that it may."""
    tools = (tool("crm.export", "Export."), tool("files.crm.export", "Copy."), tool("files.other", "Nothing."))
    index = build(tools)
    mask = np.array([t.server_id == "files" for t in index.tools])
    small = build([t for t in tools if t.server_id == "files"])

    for task in ("please run crm.export", '"crm.export"'):
        here = index.view(mask).search(task).hits
        alone = small.view(everyone(small)).search(task).hits
        assert here[0].named == ('"' in task), "a name with a dot is one in quotes: `Node.js` is a word, too"
        assert [(h.tool_id, h.named, h.score) for h in here] == [(h.tool_id, h.named, h.score) for h in alone]


def test_file_whose_arrays_do_not_agree_is_a_format_error(tmp_path: Path) -> None:
    path = tmp_path / "one.idx"
    index = build(TOOLS)
    arrays = index._parts.arrays()
    for lacking, changed in (("terms", None), ("starts", arrays["starts"][:-1]), ("tools", arrays["tools"][:-1])):
        broken = {name: array for name, array in arrays.items() if name != lacking}
        write_arrays(path, broken if changed is None else {**broken, lacking: changed}, key=index.key)

        with pytest.raises(IndexFormatError):
            Index.load(path, tools=TOOLS, embedder=bundled_embedder())
