"""What is found for everything is named, and what answers its own requests is not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from toolcrib.review.probe import DEPTH, MIN_TOOLS, RULE, Search, entered, limit, probe, probe_requests

HONEST = tuple(f"shop.tool_{number:03}" for number in range(200))


def turning(n_stuffed: int, *, every: int = 1) -> Search:
    """A search in which honest tools take turns, and stuffed ones lead one request in `every`."""
    place = {request: number for number, request in enumerate(probe_requests())}

    def search(task: str) -> Sequence[str]:
        start = 7 * place[task] % len(HONEST)
        honest = [HONEST[(start + step) % len(HONEST)] for step in range(20)]
        stuffed = [f"stranger.{number}" for number in range(n_stuffed)] if place[task] % every == 0 else []
        return [*stuffed, *honest]

    return search


def test_the_requests_are_many_distinct_and_short() -> None:
    requests = probe_requests()
    assert len(requests) == len(set(requests)) == 300
    assert all(request.strip() == request and 3 <= len(request) <= 400 for request in requests)


def test_a_tool_that_is_found_for_everything_is_named_with_its_share_and_requests() -> None:
    found = probe(turning(1), waiting={"stranger.0"}, in_service=HONEST)
    assert list(found) == ["stranger.0"]
    assert found["stranger.0"].rule == RULE
    assert "100%" in found["stranger.0"].why
    assert all(repr(request) in found["stranger.0"].evidence for request in probe_requests()[:3])


def test_honest_tools_are_not_named_though_all_of_them_wait() -> None:
    assert probe(turning(0), waiting=HONEST, in_service=()) == {}


@pytest.mark.parametrize("n_stuffed", [1, 6, 20])
def test_stuffed_tools_that_wait_together_do_not_shield_each_other(n_stuffed: int) -> None:
    waiting = {f"stranger.{number}" for number in range(n_stuffed)}
    assert probe(turning(n_stuffed), waiting=waiting, in_service=HONEST).keys() == waiting


def test_stuffed_tools_among_a_catalogs_first_are_named() -> None:
    assert list(probe(turning(1, every=5), waiting={*HONEST, "stranger.0"}, in_service=())) == ["stranger.0"]


def test_places_behind_the_fifth_do_not_count() -> None:
    def search(task: str) -> Sequence[str]:
        return [*HONEST[:DEPTH], "stranger.0"]

    assert entered(search, waiting={"stranger.0"}, rivals=HONEST) == {}
    assert entered(search, waiting={"stranger.0"}, rivals=HONEST[1:])["stranger.0"].share == 1.0


def test_requests_are_shown_best_place_first() -> None:
    first, second = probe_requests()[:2]
    lists = {first: [HONEST[0], "stranger.0"], second: ["stranger.0"]}
    found = entered(lambda task: lists.get(task, []), waiting={"stranger.0"}, rivals=HONEST)
    assert found["stranger.0"].requests == (second, first)


def test_a_catalog_too_small_to_tell_is_not_judged() -> None:
    few = HONEST[: MIN_TOOLS - 2]
    assert probe(turning(1), waiting={"stranger.0"}, in_service=few) == {}
    assert probe(turning(1), waiting={"stranger.0"}, in_service=HONEST[: MIN_TOOLS - 1]) != {}


def test_the_limit_falls_with_the_size_of_the_catalog() -> None:
    limits = [limit(n) for n in (MIN_TOOLS, 200, 1_000, 12_000)]
    assert limits == sorted(limits, reverse=True)
    assert all(DEPTH / n < limit(n) < 1 for n in (MIN_TOOLS, 200, 1_000, 12_000))
