"""Parts and facets of a task."""

from __future__ import annotations

import pytest

from toolcrib.retrieval.decompose import MAX_FACETS, facets, parts


@pytest.mark.parametrize(
    ("task", "found"),
    [
        pytest.param("find the open invoices", (), id="one short request"),
        pytest.param(
            "find the open invoices, convert the totals",
            ("find the open invoices", "convert the totals"),
            id="clauses",
        ),
        pytest.param(
            "I am in Oslo for the fair. What is the weather in the harbour?",
            ("I am in Oslo for the fair", "What is the weather in the harbour"),
            id="sentences that ask for nothing are facets, too",
        ),
        pytest.param("open invoices, totals", ("open invoices",), id="one word alone is no facet"),
    ],
)
def test_facets_are_all_that_a_task_speaks_of(task: str, found: tuple[str, ...]) -> None:
    assert facets(task) == found


def test_parts_are_facets() -> None:
    task = "Get the weather for Oslo and send it to the sales team"

    assert set(parts(task)) <= set(facets(task, parts=parts(task)))


def test_what_is_forbidden_is_no_facet() -> None:
    assert all(
        "restart" not in facet for facet in facets("do not restart the service, show me its logs, count the lines")
    )


def test_facets_are_bounded() -> None:
    task = ". ".join(f"count the sheep of farm {number}" for number in range(200))

    assert len(facets(task)) == MAX_FACETS
