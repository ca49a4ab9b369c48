"""Figures of a run with a model, worked out by hand; intervals over cases; pairs of ways."""

from __future__ import annotations

from tests.evals.models.making import PRICE, cases
from toolcrib.evals.models.attempts import Attempt, Made, holds_expected
from toolcrib.evals.models.checks import check_of
from toolcrib.evals.models.summary import attempt_row, summarised
from toolcrib.evals.models.ways import Way

ONE, TWO, NONE = cases(
    {"id": "one", "task": "t", "expect": [["a.x", "a.y"]], "forbid": ["a.bad"]},
    {"id": "two", "task": "t", "expect": [["a.x"], ["a.z"]]},
    {"id": "none", "task": "t", "expect": None},
)


def made(tool_id: str, *, available: bool = True, faults: tuple[str, ...] = ()) -> Made:
    return Made(tool_id=tool_id, arguments={}, available=available, faults=faults, as_expected=None)


def attempt(case: object, *calls: Made, way: Way = Way.ALL, repeat: int = 1, **more: object) -> Attempt:
    fields = {
        "set_name": "s", "lookups": 0, "turns": 1, "shown": frozenset(), "answer": "", "input_tokens": 100,
        "first_input_tokens": 100, "output_tokens": 10,
    } | more  # fmt: skip
    return Attempt(case=case, way=way, repeat=repeat, calls=calls, **fields)  # type: ignore[arg-type]


def test_what_an_attempt_was_worth() -> None:
    assert attempt(ONE, made("a.y")).correct
    other = attempt(ONE, made("a.q"), made("a.x"))
    assert (other.correct, other.exact, other.first_correct) == (True, False, False)
    half = attempt(TWO, made("a.z"), shown=frozenset({"a.x", "a.z"}))
    assert (half.covered, half.correct, half.missed, half.first_correct) == (0.5, False, "not_called", True)
    assert attempt(TWO, made("a.z"), shown=frozenset({"a.z"})).missed == "not_shown"
    bad = attempt(ONE, made("a.x"), made("a.bad"))
    assert (bad.forbidden, bad.correct, bad.missed) == (True, False, "forbidden")
    assert attempt(NONE).correct and attempt(NONE).covered is None
    assert attempt(NONE, made("a.x")).missed == "called_needlessly"
    assert attempt(NONE, made("a.x", available=False)).correct
    assert attempt(NONE, failed="status 400").missed == "failed"


def test_expected_arguments_may_stand_among_others() -> None:
    assert holds_expected({"a": 1}, {"a": 1, "b": 2}) is True
    assert holds_expected({"a": 1}, {"a": 2}) is False
    assert holds_expected({"a": None}, {}) is False
    assert holds_expected({"a": 1}, "a=1") is False
    assert holds_expected(None, {}) is None


def test_repeats_are_averaged_first_and_cases_then() -> None:
    attempts = [
        attempt(ONE, made("a.x"), repeat=1),
        attempt(ONE, made("a.q", faults=("order: expected text",)), repeat=2),
        attempt(TWO, made("a.x"), made("a.z"), repeat=1, input_tokens=300),
        attempt(TWO, made("a.x"), made("a.z"), repeat=2, input_tokens=300),
    ]
    told = summarised(attempts, ways=(Way.ALL,), price=PRICE, seed=1)["ways"]["all"]
    assert told["metrics"]["correct"] == 0.75
    assert told["metrics"]["valid_arguments"] == 0.75
    assert told["metrics"]["forbidden"] == 0.0  # over the one case that forbids something
    assert told["metrics"]["needless"] is None and told["metrics"]["completed"] is None
    assert told["metrics"]["input_tokens"] == 200.0
    assert told["intervals"]["correct"][0] <= 0.75 <= told["intervals"]["correct"][1]
    assert told["intervals"]["completed"] is None
    assert told["agreement"] == 0.5
    assert told["missed"] == {"not_shown": 1}
    assert (told["n_cases"], told["n_attempts"], told["n_calls"]) == (2, 4, 6)
    assert told["usd"] == (800 * 1.0 + 40 * 5.0) / 1e6


def test_ways_are_compared_case_by_case() -> None:
    attempts = [
        attempt(ONE, made("a.x")),
        attempt(TWO, input_tokens=1_000),
        attempt(ONE, made("a.x"), way=Way.TOOLCRIB, input_tokens=50),
        attempt(TWO, made("a.x"), made("a.z"), way=Way.TOOLCRIB, input_tokens=50),
        attempt(NONE, way=Way.TOOLCRIB),
    ]
    told = summarised(attempts, ways=(Way.ALL, Way.TOOLCRIB), price=None, seed=1)
    (name,) = told["differences"]
    assert name == "toolcrib - all"
    found = told["differences"][name]
    assert (found["correct"]["mean"], found["correct"]["n"]) == (0.5, 2)
    assert found["input_tokens"]["mean"] == -500.0
    assert found["completed"] is None
    assert told["ways"]["all"]["usd"] is None


def test_an_attempt_that_failed_is_not_correct_and_not_cheap() -> None:
    attempts = [attempt(ONE, made("a.x")), attempt(TWO, failed="status 400: too long", input_tokens=0)]
    told = summarised(attempts, ways=(Way.ALL,), price=PRICE, seed=1)["ways"]["all"]
    assert told["metrics"]["correct"] == 0.5
    assert told["metrics"]["input_tokens"] == 100.0
    assert (told["n_failed"], told["failures"]) == (1, {"status 400: too long": 1})


def test_a_run_without_attempts_has_no_figures() -> None:
    told = summarised([], ways=(Way.ALL,), price=PRICE, seed=1)["ways"]["all"]
    assert set(told["metrics"].values()) == {None}
    assert (told["agreement"], told["n_attempts"]) == (None, 0)


def test_a_check_wants_calls_in_order_and_texts_in_the_answer() -> None:
    (case,) = cases({"id": "c", "task": "t", "expect": [["a.x"]],
                     "check": {"results": {"a.x": {"id": 7}, "a.y": "plain"}, "calls": ["a.x", "a.y"],
                               "answer": ["Seven"]}})  # fmt: skip
    check = check_of(case)
    assert check is not None
    assert check.holds(called=["a.x", "a.q", "a.y"], answer="it is SEVEN")
    assert not check.holds(called=["a.y", "a.x"], answer="seven")
    assert not check.holds(called=["a.x", "a.y"], answer="six")
    assert [check.result_of(one) for one in ("a.x", "a.y", "a.z")] == ['{"id": 7}', "plain", '{"ok": true}']
    (plain,) = cases({"id": "c", "task": "t", "expect": [["a.x"]], "check": "seven"})
    held = check_of(plain)
    assert held is not None and held.holds(called=[], answer="seven") and check_of(ONE) is None


def test_an_attempt_is_told_whole() -> None:
    row = attempt_row(attempt(ONE, made("a.q", faults=("x",))))
    assert row["calls"] == [
        {"tool_id": "a.q", "arguments": {}, "available": True, "faults": ["x"], "as_expected": None}
    ]
    assert (row["set"], row["id"], row["way"], row["missed"]) == ("s", "one", "all", "not_shown")
