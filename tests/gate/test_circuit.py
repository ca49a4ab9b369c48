from __future__ import annotations

import pytest

from toolcrib.gate.circuit import Circuits


class Clock:
    """Seconds that pass when a test says so."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def went(circuits: Circuits, *outcomes: bool | None, server_id: str = "shop") -> list[bool]:
    """Calls one after the other, each with what became of it; whether each was let through."""
    through = []
    for failed in outcomes:
        passage = circuits.enter(server_id)
        through.append(passage is not None)
        if passage is not None:
            circuits.leave(passage, failed=failed)
    return through


def test_failures_in_a_row_open_the_circuit_of_their_own_server(clock):
    circuits = Circuits(failures=3, clock=clock)
    assert went(circuits, True, True, True, True) == [True, True, True, False]
    assert circuits.is_open("shop")
    assert went(circuits, False, server_id="hub") == [True]
    assert not circuits.is_open("hub")


def test_an_answer_between_failures_begins_the_count_anew_and_a_call_given_up_does_not(clock):
    circuits = Circuits(failures=3, clock=clock)
    assert went(circuits, True, True, False, True, True) == [True] * 5
    assert not circuits.is_open("shop")
    assert went(circuits, None, True) == [True, True]
    assert circuits.is_open("shop")


def test_after_a_while_one_call_tries_and_its_answer_closes_the_circuit(clock):
    circuits = Circuits(failures=1, reset_s=30, clock=clock)
    went(circuits, True)
    clock.now_s += 29.9
    assert circuits.enter("shop") is None
    clock.now_s += 0.2
    assert not circuits.is_open("shop")
    probe = circuits.enter("shop")
    assert probe is not None
    assert circuits.enter("shop") is None, "one at a time"
    circuits.leave(probe, failed=False)
    assert went(circuits, False, False) == [True, True]


def test_a_try_that_fails_keeps_the_circuit_open_for_the_whole_time_again(clock):
    circuits = Circuits(failures=5, reset_s=30, clock=clock)
    went(circuits, *[True] * 5)
    clock.now_s += 31
    assert went(circuits, True, False) == [True, False]
    clock.now_s += 29
    assert circuits.is_open("shop")
    clock.now_s += 2
    assert went(circuits, False, False) == [True, True]


def test_a_try_that_is_given_up_leaves_the_next_call_to_try(clock):
    circuits = Circuits(failures=1, reset_s=30, clock=clock)
    went(circuits, True)
    clock.now_s += 31
    assert went(circuits, None, None, False, False) == [True] * 4


def test_calls_from_before_do_not_keep_an_open_circuit_open_but_an_answer_closes_it(clock):
    circuits = Circuits(failures=1, reset_s=30, clock=clock)
    early = [circuits.enter("shop") for _ in range(2)]
    went(circuits, True)
    clock.now_s += 20
    circuits.leave(early[0], failed=True)
    clock.now_s += 11
    assert not circuits.is_open("shop")
    went(circuits, True)
    assert circuits.is_open("shop")
    circuits.leave(early[1], failed=False)
    assert not circuits.is_open("shop")


def test_other_limits_hold_at_once_and_none_closes_every_circuit(clock):
    circuits = Circuits(failures=1, reset_s=30, clock=clock)
    went(circuits, True)
    circuits.configure(failures=1, reset_s=5)
    clock.now_s += 6
    assert not circuits.is_open("shop")
    went(circuits, True)
    circuits.configure(failures=0, reset_s=5)
    assert went(circuits, *[True] * 20) == [True] * 20


def test_memory_is_bounded_and_servers_that_answer_take_none(clock):
    circuits = Circuits(failures=2, clock=clock, max_servers=3)
    for number in range(50):
        went(circuits, True, server_id=f"s{number}")
        went(circuits, False, server_id=f"ok{number}")
    assert list(circuits._circuits) == ["s47", "s48", "s49"]
