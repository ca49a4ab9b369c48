"""Cases asked of a model over both wires: what was called, what counts as correct, and what ends a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.evals.models.making import ALL_WAYS, ROWS, WIRES, asked, by_way, runs, shop
from tests.evals.models.vendor import Vendor
from tests.flow.worlds import World, tool
from toolcrib.errors import ConfigError
from toolcrib.evals.models.ways import Way


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    one = shop(tmp_path / "crib")
    yield one
    one.close()


@pytest.mark.parametrize("wire", WIRES)
def test_every_way_finds_the_tools_and_calls_none_where_none_fits(world: World, tmp_path: Path, wire: str) -> None:
    vendor = Vendor()
    ran, _, _ = runs(asked(world, *ROWS), tmp_path, wire=wire, vendor=vendor)
    assert not any(one.failed for one in ran.attempts)
    told = {(one.case.case_id, one.way): one.called for one in ran.attempts}
    for way in ALL_WAYS:
        assert told["look", way] == ("shop.get_order",)
        assert told["both", way] == ("shop.get_order", "mail.send_message")
        assert told["none", way] == ()
    assert all(one.correct and one.exact for one in ran.attempts)
    assert all(made.fits for one in ran.attempts for made in one.calls)


@pytest.mark.parametrize("wire", WIRES)
def test_looking_for_tools_is_counted_and_is_no_call(world: World, tmp_path: Path, wire: str) -> None:
    ran, _, _ = runs(asked(world, ROWS[0]), tmp_path, wire=wire)
    found = by_way(ran)
    assert {way: found["look", way].lookups for way in ALL_WAYS} == {
        Way.ALL: 0, Way.SEARCH: 1, Way.TOOLCRIB: 1, Way.SELECT: 0,
    }  # fmt: skip
    assert {way: found["look", way].turns for way in ALL_WAYS} == {
        Way.ALL: 1, Way.SEARCH: 1, Way.TOOLCRIB: 2, Way.SELECT: 1,
    }  # fmt: skip
    assert all(one.shown == {"shop.get_order"} for one in ran.attempts)
    assert found["look", Way.SEARCH].input_tokens < found["look", Way.ALL].input_tokens


def test_a_caller_is_given_only_what_policy_permits_in_every_way(tmp_path: Path) -> None:
    policy = 'permit (principal, action, resource);\nforbid (principal, action, resource == Tool::"shop.issue_refund");'
    world = shop(tmp_path / "crib", policy=policy)
    vendor = Vendor()
    try:
        ran, _, _ = runs(asked(world, ROWS[1]), tmp_path, vendor=vendor)
    finally:
        world.close()
    assert len(ran.attempts) == 4
    assert "issue_refund" not in str(vendor.asked)
    assert {one.missed for one in ran.attempts} == {"not_shown"}


def test_arguments_that_do_not_fit_are_told_and_may_be_mended(world: World, tmp_path: Path) -> None:
    row = {"id": "badly", "task": "badly look up the order by its number, and send an e-mail message",
           "expect": [["shop.get_order"], ["mail.send_message"]]}  # fmt: skip
    ran, _, _ = runs(asked(world, row), tmp_path, ways=(Way.ALL, Way.TOOLCRIB))
    for one in ran.attempts:
        first, second, *_ = one.calls
        assert (first.tool_id, second.tool_id) == ("shop.get_order", "shop.get_order")
        assert not first.fits and "order" in first.faults[0]
        assert second.fits and one.correct


def test_expected_arguments_are_compared(world: World, tmp_path: Path) -> None:
    right = ROWS[0] | {"id": "right", "arguments": {"shop.get_order": {"order": "A-17"}}}
    wrong = ROWS[0] | {"id": "wrong", "arguments": {"shop.get_order": {"order": "B-2"}}}
    ran, _, _ = runs(asked(world, right, wrong, ROWS[0]), tmp_path, ways=(Way.ALL,))
    assert [one.calls[0].as_expected for one in ran.attempts] == [True, False, None]


def test_a_forbidden_call_ends_it_and_is_never_correct(world: World, tmp_path: Path) -> None:
    row = ROWS[2] | {"forbid": ["shop.get_order"], "expect": [["mail.send_message"]]}
    ran, _, _ = runs(asked(world, row), tmp_path, ways=(Way.ALL,))
    (one,) = ran.attempts
    assert (one.forbidden, one.correct, one.missed, one.called) == (True, False, "forbidden", ("shop.get_order",))


def test_a_call_where_no_tool_fits_is_wrong(world: World, tmp_path: Path) -> None:
    ran, _, _ = runs(asked(world, ROWS[0] | {"expect": None}), tmp_path, ways=(Way.ALL,))
    assert [one.missed for one in ran.attempts] == ["called_needlessly"]


def test_a_check_is_held_against_scripted_results_and_the_last_answer(world: World, tmp_path: Path) -> None:
    check = {"results": {"shop.get_order": {"total": 4711}}, "calls": ["shop.get_order"], "answer": ["4711"]}
    other = check | {"answer": ["0815"]}
    place = asked(world, ROWS[0] | {"id": "done", "check": check}, ROWS[0] | {"id": "not", "check": other}, ROWS[0])
    ran, _, _ = runs(place, tmp_path, ways=(Way.ALL, Way.TOOLCRIB))
    assert [one.completed for one in ran.attempts] == [True, True, False, False, None, None]
    assert ran.attempts[0].answer == 'Done: {"total": 4711}'
    assert world.servers["shop"].calls == []  # nothing was executed


@pytest.mark.parametrize(
    "check", [{"answr": "x"}, {"results": {}}, {"calls": "shop.get_order"}], ids=["unknown", "nothing", "no-list"]
)
def test_a_check_that_cannot_be_read_is_told_before_anything_is_sent(
    world: World, tmp_path: Path, check: object
) -> None:
    vendor = Vendor()
    with pytest.raises(ConfigError, match=r"cases.jsonl:1"):
        runs(asked(world, ROWS[0] | {"check": check}), tmp_path, vendor=vendor)
    assert vendor.asked == []


def test_a_refused_request_fails_its_attempt_and_the_others_go_on(world: World, tmp_path: Path) -> None:
    ways = (Way.ALL, Way.SEARCH, Way.TOOLCRIB)
    ran, _, _ = runs(asked(world, *ROWS), tmp_path, vendor=Vendor(most_tools=4), ways=ways)
    failed = [one for one in ran.attempts if one.failed]
    assert {one.way for one in failed} == {Way.ALL}
    assert {one.failed for one in failed} == {"status 400: prompt is too long"}
    assert all(not one.correct for one in failed)
    assert all(one.correct for one in ran.attempts if not one.failed)


@pytest.mark.parametrize(("status", "hint"), [(401, "key"), (404, "model")])
def test_what_would_fail_for_every_request_ends_the_command(
    world: World, tmp_path: Path, status: int, hint: str
) -> None:
    with pytest.raises(ConfigError, match=hint):
        runs(asked(world, ROWS[0]), tmp_path, vendor=Vendor(faults=[(status, "no")]))


def test_a_vendor_that_stops_answering_ends_the_run_and_what_was_measured_stands(world: World, tmp_path: Path) -> None:
    vendor = Vendor()
    place = asked(world, ROWS[0], ROWS[1])
    whole, _, _ = runs(place, tmp_path / "whole", ways=(Way.ALL,))
    assert len(whole.attempts) == 2
    runs(asked(world, ROWS[0]), tmp_path / "part", ways=(Way.ALL,), vendor=vendor)
    vendor.faults = [(529, "overloaded")] * 4
    ran, _, _ = runs(place, tmp_path / "part", ways=(Way.ALL,), vendor=vendor)
    assert (len(ran.attempts), ran.by_fault) == (1, True)
    assert "529" in ran.stopped


def test_a_conversation_that_never_ends_is_ended(world: World, tmp_path: Path) -> None:
    row = ROWS[2] | {"check": {"calls": ["mail.send_message"]}}
    ran, _, _ = runs(asked(world, row), tmp_path, ways=(Way.ALL,), max_turns=2)
    (one,) = ran.attempts
    assert (one.turns, one.out_of_turns, one.completed) == (2, True, False)


def test_cases_with_candidates_are_left_out_and_counted(world: World, tmp_path: Path) -> None:
    ran, _, _ = runs(asked(world, ROWS[0], ROWS[3] | {"candidates": ["mail.list_folders"]}), tmp_path, ways=(Way.ALL,))
    assert (len(ran.attempts), ran.left_out) == (1, 1)


def test_a_name_that_the_model_made_up_counts_as_unavailable(world: World, tmp_path: Path) -> None:
    vendor = Vendor()

    class Inventing:
        def send(self, request: dict[str, object]) -> object:
            status, body = vendor.answered("/v1/messages", "key-that-must-not-show", request)
            assert status == 200
            for block in body["content"]:
                if block["type"] == "tool_use" and len(vendor.asked) == 1:
                    block["name"] = "shop__no_such_tool"
            return body

    row = ROWS[0] | {"forbid": ["shop__no_such_tool"]}
    ran, _, _ = runs(asked(world, row), tmp_path, ways=(Way.ALL,), sender=Inventing())  # type: ignore[arg-type]
    (one,) = ran.attempts
    assert [made.available for made in one.calls] == [False]
    assert (one.called, one.forbidden, one.missed) == ((), False, "not_called")


def test_a_tool_without_a_schema_can_be_sent(tmp_path: Path) -> None:
    bare = tool("ring_bell", "Ring the big bell.") | {"inputSchema": {"type": "object"}}
    world = World(tmp_path / "crib", {"shop": [bare]})
    row = {"id": "ring", "task": "ring the big bell", "expect": [["shop.ring_bell"]]}
    try:
        for wire in WIRES:
            ran, _, _ = runs(asked(world, row), tmp_path, wire=wire)
            assert all(one.correct for one in ran.attempts)
    finally:
        world.close()
