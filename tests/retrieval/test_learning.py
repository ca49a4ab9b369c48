"""What was learned from use, at this room's door: parts, the file, and views that use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.retrieval.making import build, everyone, tool
from toolcrib.errors import RetrievalError
from toolcrib.retrieval.index import Index
from toolcrib.retrieval.learning import ANY_TENANT, Learned, Part
from toolcrib.retrieval.storage import write_arrays
from toolcrib.retrieval.tuning import MIN_PRECEDENT_REQUESTS, Example, fit
from toolcrib.types import Tool

TOOLS = [
    tool("a.send_invoice", "Send an invoice to a customer by mail."),
    tool("a.cancel_order", "Cancel an order and give the money back."),
    tool("a.track_parcel", "Tell where a parcel is."),
    tool("a.add_discount", "Add a discount to a product."),
    tool("b.list_customers", "List customers and their addresses."),
    tool("b.update_stock", "Set how many pieces of a product are in stock."),
    tool("b.open_ticket", "Open a support ticket for a customer."),
    tool("b.close_ticket", "Close a support ticket."),
]
HIDDEN = [tool("a.open_vault", "Open the vault."), tool("c.count_gold", "Count the gold.")]
WORDS = {"a.track_parcel": "wismo", "a.cancel_order": "chargeback", "b.update_stock": "recount"}
ENDS = ("for the lady from Leeds", "again please", "number 4711", "before noon", "for Mister Brown", "as always", "now")
PEOPLE = ("ann", "bob", "cleo")


def rows(tools: Sequence[Tool]) -> list[tuple[str, str]]:
    return [(one.tool_id, one.digest) for one in tools]


def examples(index: Index, *, people: Sequence[str] = PEOPLE) -> list[Example]:
    place = {one.tool_id: number for number, one in enumerate(index.tools)}
    return [
        Example(text=f"{word} {end}", called=(place[tool_id],), subjects=frozenset([people[number % len(people)]]))
        for tool_id, word in WORDS.items()
        for number, end in enumerate(ENDS)
    ]


def learned_over(tools: Sequence[Tool], *, people: Sequence[str] = PEOPLE, min_subjects: int = 2) -> Part | None:
    index = build(tools)
    return fit(
        index.view(everyone(index)),
        examples(index, people=people),
        tools=rows(index.tools),
        tenant="",
        model_id=index.model_id,
        min_subjects=min_subjects,
    )


@pytest.fixture(scope="module")
def part() -> Part:
    found = learned_over(TOOLS)
    assert found is not None
    return found


def simple(names: str, *, tenant: str = "", dim: int = 4) -> Part:
    """A part over tools named by letters, that changes nothing."""
    return Part(
        tenant=tenant,
        tools=tuple((name, f"digest of {name}") for name in names),
        model_id="m",
        pieces=np.zeros(0, dtype=np.int32),
        deltas=np.zeros((0, dim), dtype=np.int8),
        scales=np.zeros(0, dtype=np.float32),
        called=np.zeros(0, dtype=np.int32),
        precedents=np.zeros((0, dim), dtype=np.int8),
        lengths=np.zeros(0, dtype=np.float32),
        base=np.zeros(dim, dtype=np.float32),
        weight=0.0,
        n_requests=20,
        n_subjects=2,
    )


def test_words_that_no_definition_has_find_what_was_called_for_them(part: Part) -> None:
    index = build(TOOLS)
    plain, taught = index.view(everyone(index)), index.view(everyone(index), learned=part)
    asked = {tool_id: f"{word} for the gentleman from York" for tool_id, word in WORDS.items()}
    assert [taught.search(task).hits[0].tool_id for task in asked.values()] == list(asked)
    assert [plain.search(task).hits[0].tool_id for task in asked.values()] != list(asked)


def test_a_request_without_a_learned_piece_is_answered_as_before() -> None:
    index = build(TOOLS)
    view = index.view(everyone(index))
    nothing = simple("", dim=256)
    assert index.view(everyone(index), learned=nothing).search("where is a parcel") == view.search("where is a parcel")


def test_hidden_tools_change_no_bit_of_a_taught_view(part: Part) -> None:
    alone, beside = build(TOOLS), build([*TOOLS, *HIDDEN])
    known = {one.tool_id for one in TOOLS}
    permitted = np.array([one.tool_id in known for one in beside.tools])
    for task in ("wismo before noon", "chargeback for the lady", "close the ticket", "recount and send the invoice"):
        one = alone.view(everyone(alone), learned=part).search(task)
        other = beside.view(permitted, learned=part).search(task)
        number = np.cumsum(permitted) - 1
        hits = tuple(replace(hit, tool_idx=int(number[hit.tool_idx])) for hit in other.hits)
        assert replace(other, hits=hits) == one


def test_the_same_examples_give_the_same_part(part: Part) -> None:
    again = learned_over(list(reversed(TOOLS)))
    assert again is not None and again.digest == part.digest


def test_what_one_person_said_is_not_learned() -> None:
    assert learned_over(TOOLS, people=("ann",)) is None
    alone = learned_over(TOOLS, people=("ann",), min_subjects=1)
    assert alone is not None and alone.n_subjects == 1


def test_precedents_rest_on_several_requests_of_several_people() -> None:
    index = build(TOOLS)
    one_each = [
        Example(text=f"{word} {end}", called=(place,), subjects=frozenset([PEOPLE[place % 3]]))
        for place, word in enumerate(("wismo", "chargeback", "recount", "escalate", "refund", "oops", "again", "stop"))
        for end in ENDS[: MIN_PRECEDENT_REQUESTS + 2]
    ]
    found = fit(
        index.view(everyone(index)),
        one_each,
        tools=rows(index.tools),
        tenant="",
        model_id=index.model_id,
    )
    assert found is None or len(found.called) == 0  # each tool was asked for by one person only


def test_nothing_is_learned_from_too_little() -> None:
    index = build(TOOLS)
    view = index.view(everyone(index))
    assert fit(view, examples(index)[:5], tools=rows(index.tools), tenant="", model_id=index.model_id) is None
    assert fit(view, [], tools=rows(index.tools), tenant="", model_id=index.model_id) is None


# --- who it counts for


def test_a_part_counts_only_where_all_its_tools_are_in_reach_as_they_were() -> None:
    learned = Learned(parts=(simple("ab"), simple("abc"), simple("bd")))

    def chosen(names: str, **other: str) -> str | None:
        reach = {name: f"digest of {name}" for name in names} | other
        found = learned.for_reach(reach, tenant="", model_id="m")
        return None if found is None else "".join(tool_id for tool_id, _ in found.tools)

    assert [chosen(names) for names in ("abcd", "abd", "ab", "bd", "a", "")] == [
        "abc",
        "bd",
        "ab",
        "bd",
        None,
        None,
    ] or ([chosen(names) for names in ("abcd", "ab", "bd", "a", "")] == ["abc", "ab", "bd", None, None])
    assert chosen("abc", c="another definition") == "ab"
    assert chosen("ab", a="another definition") is None


def test_a_part_of_another_tenant_or_model_does_not_count() -> None:
    learned = Learned(parts=(simple("a", tenant="acme"), simple("b", tenant=ANY_TENANT)))
    reach = {"a": "digest of a"}
    assert learned.for_reach(reach, tenant="acme", model_id="m") is learned.parts[0]
    assert learned.for_reach(reach, tenant="", model_id="m") is None
    assert learned.for_reach(reach, tenant="acme", model_id="another") is None
    assert learned.for_reach({"b": "digest of b"}, tenant="whoever", model_id="m") is learned.parts[1]


def test_ties_are_broken_by_digest_whatever_the_order() -> None:
    one, two = simple("ab"), simple("bc")
    reach = {name: f"digest of {name}" for name in "abc"}
    found = {Learned(parts=parts).for_reach(reach, tenant="", model_id="m") for parts in ((one, two), (two, one))}
    assert found == {max(one, two, key=lambda p: p.digest)}


# --- the file


def test_a_file_reads_back_as_it_was_written(part: Part, tmp_path: Path) -> None:
    what = Learned(parts=(part, simple("ab", tenant="acme")), made="2026-11-30T00:00:00+00:00")
    what.write(tmp_path / "file")
    again = Learned.read(tmp_path / "file")
    assert (again.made, again.digest) == (what.made, what.digest)
    assert [one.digest for one in again.parts] == [one.digest for one in what.parts]
    assert [one.tools for one in again.parts] == [one.tools for one in what.parts]


def test_a_file_that_is_missing_cut_or_altered_is_refused_with_a_hint(part: Part, tmp_path: Path) -> None:
    path = tmp_path / "file"
    Learned(parts=(part,)).write(path)
    whole = path.read_bytes()
    for content in (b"", whole[:-1], whole[:-300] + b"x" + whole[-299:], b"PK" + whole):
        path.write_bytes(content)
        with pytest.raises(RetrievalError) as caught:
            Learned.read(path)
        assert caught.value.where == str(path) and "toolcrib learn" in caught.value.hint
    path.unlink()
    with pytest.raises(RetrievalError):
        Learned.read(path)


def test_an_index_is_no_learned_file(tmp_path: Path) -> None:
    build(TOOLS).save(tmp_path / "file")
    with pytest.raises(RetrievalError):
        Learned.read(tmp_path / "file")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("deltas", np.zeros((3, 7), dtype=np.int8)),
        ("pieces", np.array([5, 5], dtype=np.int32)),
        ("called", np.array([99], dtype=np.int32)),
        ("base", np.array([np.nan] * 4, dtype=np.float32)),
        ("scales", np.array([np.inf], dtype=np.float32)),
        ("pieces", np.zeros(0, dtype=np.int64)),
    ],
    ids=["shape", "twice", "no such tool", "not a number", "length", "type"],
)
def test_arrays_that_do_not_fit_together_are_refused(name: str, value: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "file"
    what = Learned(parts=(replace(simple("ab"), **{name: value}),))
    what.write(path)
    with pytest.raises(RetrievalError):
        Learned.read(path)


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    write_arrays(tmp_path / "file", {}, key="toolcrib-learned/0")
    with pytest.raises(RetrievalError, match="format"):
        Learned.read(tmp_path / "file")


def test_a_weight_that_is_no_number_is_refused(tmp_path: Path) -> None:
    for weight in (float("nan"), float("inf")):
        Learned(parts=(replace(simple("ab"), weight=weight),)).write(tmp_path / "file")
        with pytest.raises(RetrievalError, match="weight"):
            Learned.read(tmp_path / "file")


def test_what_is_learned_from_is_the_text_that_a_search_embeds() -> None:
    index = build([tool(f"a.do_{noun}", f"Gadget for a {noun}.") for noun in "oak elm fir ash yew box bay fig".split()])
    view = index.view(everyone(index))
    whole, telling = view.looked_at("gadget of the oak"), view.looked_at("oak")
    assert whole is not None and telling is not None
    assert whole.asked.pieces == telling.asked.pieces
