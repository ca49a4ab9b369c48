"""Answers are kept and replayed, the budget is kept to, the key goes nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.evals.models.making import ROWS, WIRES, asked, runs, shop
from tests.evals.models.vendor import KEY, Vendor
from tests.flow.worlds import World
from toolcrib.errors import ConfigError, ConnectorError, ConnectorTimeoutError, StoreError
from toolcrib.evals.models.anthropic_wire import AnthropicWire
from toolcrib.evals.models.asking import Asking, Kept, OverBudget
from toolcrib.evals.models.prices import FIRST_RATIO, Price, Purse, price_of
from toolcrib.evals.models.protocol import NotTakenError, Wire
from toolcrib.evals.models.ways import Way


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    one = shop(tmp_path / "crib")
    yield one
    one.close()


@pytest.mark.parametrize("wire", WIRES)
def test_a_second_run_sends_nothing_and_says_the_same(world: World, tmp_path: Path, wire: str) -> None:
    place, vendor = asked(world, *ROWS), Vendor()
    first, sent, purse = runs(place, tmp_path, wire=wire, vendor=vendor, repeat=2)
    n_requests = len(vendor.asked)
    assert sent.n_sent == n_requests > 0
    assert purse.spent_usd > 0
    again, _, spent = runs(place, tmp_path, wire=wire, vendor=vendor, repeat=2)
    replayed, asking, _ = runs(place, tmp_path, wire=wire, replay=True, repeat=2)
    assert len(vendor.asked) == n_requests
    assert first == again == replayed
    assert (spent.spent_usd, asking.n_kept) == (0.0, n_requests)


def test_each_repeat_is_asked_for_itself(world: World, tmp_path: Path) -> None:
    _, asking, _ = runs(asked(world, ROWS[0]), tmp_path, ways=(Way.ALL,), repeat=3)
    assert asking.n_sent == 3


def test_a_replay_leaves_out_what_was_not_kept(world: World, tmp_path: Path) -> None:
    runs(asked(world, ROWS[0]), tmp_path, ways=(Way.ALL,))
    ran, _, _ = runs(asked(world, ROWS[0], ROWS[1]), tmp_path, ways=(Way.ALL,), replay=True)
    assert ([one.case.case_id for one in ran.attempts], ran.not_kept) == (["look"], 1)


def test_another_model_has_other_answers(world: World, tmp_path: Path) -> None:
    runs(asked(world, ROWS[0]), tmp_path, ways=(Way.ALL,))
    ran, _, _ = runs(asked(world, ROWS[0]), tmp_path, ways=(Way.ALL,), model="n", replay=True)
    assert ran.not_kept == 1


def test_kept_answers_hold_neither_key_nor_request(world: World, tmp_path: Path) -> None:
    row = ROWS[0] | {"task": "look up the order by its number in Quilmes"}
    runs(asked(world, row), tmp_path, ways=(Way.ALL, Way.SEARCH))
    files = list((tmp_path / "answers").iterdir())
    assert files
    for file in files:
        assert file.suffix == ".json"
        text = file.read_text(encoding="utf-8")
        assert "Quilmes" not in text and KEY not in text


def test_a_damaged_answer_is_told_with_its_file(world: World, tmp_path: Path) -> None:
    runs(asked(world, ROWS[0]), tmp_path, ways=(Way.ALL,))
    (file,) = (tmp_path / "answers").iterdir()
    file.write_text('{"answer": []}', encoding="utf-8")
    with pytest.raises(StoreError, match=file.name):
        runs(asked(world, ROWS[0]), tmp_path, ways=(Way.ALL,), replay=True)


def test_the_budget_is_never_passed_and_what_was_measured_stands(world: World, tmp_path: Path) -> None:
    place = asked(world, *ROWS)
    whole, _, all_of_it = runs(place, tmp_path / "whole", repeat=3)
    vendor = Vendor()
    ran, asking, purse = runs(place, tmp_path / "part", repeat=3, budget_usd=all_of_it.spent_usd / 2, vendor=vendor)
    assert purse.spent_usd <= purse.budget_usd
    assert 0 < len(ran.attempts) < len(whole.attempts)
    assert ran.attempts == whole.attempts[: len(ran.attempts)]
    assert "budget" in ran.stopped and not ran.by_fault
    assert asking.n_sent == len(vendor.asked)


def test_nothing_is_sent_without_a_budget(world: World, tmp_path: Path) -> None:
    vendor = Vendor()
    ran, _, _ = runs(asked(world, ROWS[0]), tmp_path, budget_usd=0.0, vendor=vendor)
    assert (vendor.asked, ran.attempts) == ([], ())


def test_a_purse_learns_how_far_a_vendor_counts_above_the_estimate() -> None:
    purse = Purse(Price(input_usd=1.0, output_usd=0.0, source=""), budget_usd=1.0)
    aside = purse.put_aside(estimated=int(1_000_000 / FIRST_RATIO), max_output=1)
    assert aside is not None and purse.put_aside(estimated=1, max_output=1) is None
    purse.pay(aside, estimated=100, input_tokens=200, output_tokens=0)
    assert purse.put_aside(estimated=600_000, max_output=1) is None
    again = purse.put_aside(estimated=499_000, max_output=1)
    assert again is not None
    purse.give_back(again)
    assert purse.put_aside(estimated=499_000, max_output=1) == again
    assert purse.spent_usd == 200 / 1e6


def test_conversations_at_a_time_change_nothing_but_the_time(world: World, tmp_path: Path) -> None:
    place = asked(world, *ROWS)
    one, _, alone = runs(place, tmp_path / "one", repeat=2)
    many, _, together = runs(place, tmp_path / "many", repeat=2, parallel=4)
    assert one == many
    assert together.spent_usd == pytest.approx(alone.spent_usd)
    half = alone.spent_usd / 2
    ran, _, purse = runs(place, tmp_path / "half", repeat=2, parallel=4, budget_usd=half)
    assert ran.stopped and purse.spent_usd <= half
    assert all(attempt in one.attempts for attempt in ran.attempts)


def test_prices() -> None:
    assert price_of("openai", "gpt-5.4-mini-2026-03-17") == price_of("openai", "gpt-5.4-mini")
    assert price_of("anthropic", "claude-haiku-4-5-20251001").output_usd == 5.0
    assert price_of("openai", "unheard-of", given=(0.0, 0.0)).of(input_tokens=1e6, output_tokens=1e6) == 0.0
    assert price_of("openai", "gpt-5.4", given=(1.0, None)).output_usd == 15.0
    for vendor, model, given in (("openai", "x", (1.0, None)), ("anthropic", "gpt-5.4", (None, None))):
        with pytest.raises(ConfigError, match="--price-in"):
            price_of(vendor, model, given=given)
    with pytest.raises(ConfigError):
        price_of("openai", "x", given=(-1.0, 1.0))


class _Faulty:
    """A vendor that never answers but raises."""

    def __init__(self, fault: BaseException) -> None:
        self.fault, self.n_asked = fault, 0

    def send(self, request: Wire) -> Wire:
        self.n_asked += 1
        raise self.fault


@pytest.mark.parametrize(
    ("fault", "n_asked", "n_spent"),
    [
        (NotTakenError("status 429"), 4, 0),
        (ConnectorTimeoutError("no answer"), 4, 4),
        (ConnectorError("not JSON"), 1, 1),
        (ConfigError("wrong key"), 1, 0),
        (RuntimeError("a bug"), 1, 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_attempt_is_put_aside_and_what_nobody_knows_is_spent(
    tmp_path: Path, fault: Exception, n_asked: int, n_spent: int
) -> None:
    purse, sender, waits = Purse(Price(input_usd=0.0, output_usd=1.0, source=""), budget_usd=1.0), _Faulty(fault), []
    kept = Kept(tmp_path / "answers")
    asking = Asking(AnthropicWire(), sender, kept=kept, purse=purse, max_output=100_000, base_url="", wait=waits.append)
    with pytest.raises(type(fault)):
        asking.ask({"model": "m", "messages": []}, repeat=1, tool_tokens=0)
    assert (sender.n_asked, len(waits)) == (n_asked, n_asked - 1)
    assert purse.spent_usd == pytest.approx(0.1 * n_spent)
    left = round(1_000_000 * (1.0 - 0.1 * n_spent)) - 1
    assert purse.put_aside(estimated=0, max_output=left) is not None  # nothing stays aside


def test_attempts_end_where_the_budget_does(tmp_path: Path) -> None:
    purse = Purse(Price(input_usd=0.0, output_usd=1.0, source=""), budget_usd=0.25)
    sender = _Faulty(ConnectorTimeoutError("no answer"))
    kept = Kept(tmp_path / "answers")
    asking = Asking(
        AnthropicWire(), sender, kept=kept, purse=purse, max_output=100_000, base_url="", wait=lambda _seconds: None
    )
    assert isinstance(asking.ask({"model": "m", "messages": []}, repeat=1, tool_tokens=0), OverBudget)
    assert sender.n_asked == 2 and purse.spent_usd <= purse.budget_usd


def test_kept_answers_are_their_owners_alone(world: World, tmp_path: Path) -> None:
    runs(asked(world, ROWS[0]), tmp_path, ways=(Way.ALL,))
    (file,) = (tmp_path / "answers").iterdir()
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
