"""I1 at this room's door: what a view answers is a function of the permitted tools alone, to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.retrieval.making import build, everyone, tool
from toolcrib.retrieval.index import Index
from toolcrib.types import Ranking, Tool

WORDS = (
    "create delete list order ticket refund weather city parcel address customer report export file send email".split()
)
TASKS = (
    "refund the order of a customer",
    "list tickets and send an email report",
    "weather in the city",
    "export_file",
    "delete the address, but do not delete the customer",
)

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8)


@st.composite
def catalogs(draw: st.DrawFn) -> tuple[list[Tool], list[bool]]:
    names = draw(
        st.lists(
            st.tuples(st.sampled_from("abc"), st.sampled_from(WORDS), st.sampled_from(WORDS)),
            min_size=1,
            max_size=24,
            unique=True,
        )
    )
    tools = [
        tool(
            f"{server}.{verb}_{noun}",
            " ".join(draw(texts)),
            schema={"properties": {word: {"description": " ".join(draw(texts))} for word in draw(texts)[:2]}},
        )
        for server, verb, noun in names
    ]
    tools.sort(key=lambda t: t.tool_id)
    return tools, draw(st.lists(st.booleans(), min_size=len(tools), max_size=len(tools)))


def alone(tools: list[Tool], permitted: list[bool], task: str) -> Ranking:
    index = build([t for t, allowed in zip(tools, permitted, strict=True) if allowed])
    return index.view(everyone(index)).search(task)


def masked(index: Index, permitted: list[bool], task: str) -> Ranking:
    """The ranking over a permitted part, with tool numbers counted among the permitted as they are in an index of its
    own.
    """
    ranking = index.view(np.array(permitted, dtype=np.bool_)).search(task)
    number = {idx: n for n, idx in enumerate(np.flatnonzero(permitted).tolist())}
    return replace(ranking, hits=tuple(replace(hit, tool_idx=number[hit.tool_idx]) for hit in ranking.hits))


@settings(max_examples=100, deadline=None)
@given(catalog=catalogs(), task=st.sampled_from(TASKS))
def test_ranking_equals_that_of_an_index_of_the_permitted_tools_alone(
    catalog: tuple[list[Tool], list[bool]], task: str
) -> None:
    tools, permitted = catalog

    assert masked(build(tools), permitted, task) == alone(tools, permitted, task)


def test_property_sees_a_statistic_that_is_taken_over_the_whole_catalog() -> None:
    """The check above can fail: document frequencies of forbidden tools would move these scores."""
    forbidden = [tool(f"x.refund_{i}", "refund refund order") for i in range(5)]
    tools = sorted(
        [tool("a.refund_order", "refund"), tool("a.send_email", "order"), *forbidden], key=lambda t: t.tool_id
    )
    index = build(tools)

    everything = index.view(everyone(index)).search("refund the order for a customer").hits
    permitted = alone(tools, [t.server_id == "a" for t in tools], "refund the order for a customer").hits

    lexical = {hit.tool_id: hit.lexical for hit in everything}
    assert all(hit.lexical != lexical[hit.tool_id] for hit in permitted)


def test_empty_permitted_set_is_answered_with_nothing() -> None:
    index = build([tool("a.refund_order", "refund")])

    ranking = index.view(np.zeros(1, dtype=np.bool_)).search("a.refund_order")

    assert ranking.hits == ()
    assert ranking.confidence == 0.0
    assert not ranking.degraded
