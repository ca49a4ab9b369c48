"""Through the vendors' own SDKs, against a local server that speaks their wire; and the command as people run it.

Needs the packages `anthropic` and `openai`; without them these tests are skipped, and the report says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.evals.making import write_lines
from tests.evals.models.making import ROWS, asked, by_way, runs, shop
from tests.evals.models.vendor import KEY, Vendor, served
from tests.flow.worlds import World
from toolcrib.cli.main import app
from toolcrib.errors import ConfigError, ConnectorError
from toolcrib.evals.models.anthropic_sdk import AnthropicSender
from toolcrib.evals.models.openai_sdk import OpenAISender
from toolcrib.evals.models.protocol import Declined
from toolcrib.evals.models.sdk import place
from toolcrib.evals.models.ways import Way

VENDORS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            find_spec(name) is None, reason=f"NOT TESTED: the SDK {name} is not installed: pip install {name}"
        ),
    )
    for name in ("anthropic", "openai")
]
SENDERS = {"anthropic": AnthropicSender, "openai": OpenAISender}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    one = shop(tmp_path / "crib")
    write_lines(one.folder / "cases.jsonl", ROWS)
    yield one
    one.close()


@pytest.mark.parametrize("name", VENDORS)
def test_the_sdk_says_what_the_wire_says(world: World, tmp_path: Path, name: str) -> None:
    place = asked(world, *ROWS)
    with served(Vendor()) as url:
        sender = SENDERS[name](KEY, base_url=url)
        through, _, _ = runs(place, tmp_path / "sdk", wire=name, sender=sender)
        sender.close()
    direct, _, _ = runs(place, tmp_path / "direct", wire=name)
    assert by_way(through) == by_way(direct)
    assert all(one.correct for one in through.attempts)


@pytest.mark.parametrize("name", VENDORS)
def test_a_vendor_that_asks_to_wait_is_asked_again(world: World, tmp_path: Path, name: str) -> None:
    vendor = Vendor(faults=[(429, "slow down"), (500, "oops"), (429, "slow down")])
    with served(vendor) as url:
        sender = SENDERS[name](KEY, base_url=url)
        ran, _, _ = runs(asked(world, ROWS[0]), tmp_path, wire=name, sender=sender, ways=(Way.ALL,))
        sender.close()
    assert [one.correct for one in ran.attempts] == [True]
    assert len(vendor.asked) == 4


@pytest.mark.parametrize("name", VENDORS)
def test_faults_are_told_without_the_key(name: str) -> None:
    vendor = Vendor(faults=[(400, "prompt is too long"), (401, "no"), (404, "no such model"), *[(429, "wait")] * 9])
    request: dict[str, Any] = {"model": "m"}
    request |= {"max_tokens": 1, "messages": []} if name == "anthropic" else {"input": []}
    with served(vendor) as url:
        sender = SENDERS[name](KEY, base_url=url)
        assert sender.send(request) == Declined(status=400, message="prompt is too long")
        for expected in (ConfigError, ConfigError, ConnectorError):
            with pytest.raises(expected) as fault:
                sender.send(request)
            assert KEY not in str(fault.value) and name in str(fault.value)
        sender.close()
    sender = SENDERS[name](KEY, base_url="http://127.0.0.1:1")
    with pytest.raises(ConnectorError, match="cannot be reached"):
        sender.send(request)
    sender.close()


@pytest.mark.parametrize("name", VENDORS[1:])
def test_a_model_that_does_not_reason_is_not_asked_for_reasoning(world: World, tmp_path: Path, name: str) -> None:
    vendor = Vendor()
    with served(vendor) as url:
        sender = SENDERS[name](KEY, base_url=url)
        ran, _, _ = runs(asked(world, ROWS[0], ROWS[1]), tmp_path, wire=name, sender=sender, model="plain")
        sender.close()
    assert all(one.correct for one in ran.attempts)
    assert sum("include" in request for request in vendor.asked) == 1


# --- the command -----------------------------------------------------------------------------------------


def ran(world: World, *words: str, code: int = 0, answer: str = "") -> Result:
    done = CliRunner().invoke(app, ["-C", str(world.folder), "eval", "model", "cases.jsonl", *words], input=answer)
    assert done.exit_code == code, (done.output, done.exception)
    return done


PRICES = ("--price-in", "1", "--price-out", "5")


@pytest.mark.parametrize("name", VENDORS)
def test_the_command_asks_shows_and_replays(world: World, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{name.upper()}_API_KEY", KEY)
    vendor = Vendor()
    with served(vendor) as url:
        words = ("--provider", name, "--model", "m", "--base-url", url, "--repeat", "2", *PRICES)
        refused = ran(world, *words, code=1, answer="n\n")
        assert "$" in refused.stderr and f"to {url}," in refused.output and vendor.asked == []
        told = json.loads(ran(world, *words, "--json", answer="y\n").stdout.removeprefix(" y\n"))  # the answer's echo
        n_requests = len(vendor.asked)
        again = json.loads(ran(world, *words, "--json", "--replay").stdout)
        table = ran(world, *words, "--yes", "--ways", "toolcrib,select")
    assert vendor.keys == {KEY}
    assert set(told["ways"]) == {"all", "search", "toolcrib"}
    assert {way["metrics"]["correct"] for way in told["ways"].values()} == {1.0}
    assert set(told["differences"]) == {"search - all", "toolcrib - all", "toolcrib - search"}
    assert told["cost"]["requests_sent"] == n_requests and told["cost"]["spent_usd"] > 0
    assert told["attempts"] == again["attempts"] and again["cost"]["spent_usd"] == 0.0
    assert "toolcrib" in table.stdout and "100.0" in table.stdout
    everything = (
        table.output
        + json.dumps(told)
        + "".join(file.read_text(encoding="utf-8") for file in (world.folder / "model-answers").iterdir())
    )
    assert KEY not in everything


@pytest.mark.parametrize("name", VENDORS)
def test_a_budget_ends_the_command_with_what_it_has(world: World, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{name.upper()}_API_KEY", KEY)
    with served(Vendor()) as url:
        words = ("--provider", name, "--model", "m", "--base-url", url, "--yes", "--json", "--max-output", "16")
        done = ran(world, *words, *PRICES, "--budget-usd", "0.006", code=1)
    told = json.loads(done.stdout)
    assert told["cost"]["spent_usd"] <= 0.006
    assert told["stopped"] and 0 < len(told["attempts"]) < 36


@pytest.mark.parametrize("name", SENDERS)
def test_a_price_that_nobody_knows_is_asked_for(world: World, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{name.upper()}_API_KEY", KEY)
    done = CliRunner().invoke(
        app, ["-C", str(world.folder), "eval", "model", "cases.jsonl", "--provider", name, "--model", "m"]
    )
    assert isinstance(done.exception, ConfigError) and "--price-in" in str(done.exception)


@pytest.mark.parametrize("name", SENDERS)
def test_without_a_key_nothing_is_sent(world: World, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(f"{name.upper()}_API_KEY", raising=False)
    words = ["-C", str(world.folder), "eval", "model", "cases.jsonl", "--provider", name, "--model", "m", *PRICES]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, ConfigError) and "API_KEY" in str(done.exception)


def test_an_unknown_way_is_an_error_and_a_missing_sdk_says_what_to_install(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["-C", str(world.folder), "eval", "model", "cases.jsonl", "--provider", "openai", "--model", "m", *PRICES]
    done = CliRunner().invoke(app, [*words, "--ways", "all,some"])
    assert isinstance(done.exception, ConfigError) and "'some'" in str(done.exception)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setitem(__import__("sys").modules, "openai", None)
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, ConfigError) and "toolcrib[openai]" in str(done.exception)


def test_a_replay_needs_neither_key_nor_price_nor_sdk(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = ran(world, "--provider", "openai", "--model", "m", "--replay", "--json", code=1)
    told = json.loads(done.stdout)
    assert told["attempts"] == [] and told["cost"]["price"] is None
    assert "36 attempts left out" in told["notes"][0]


@pytest.mark.parametrize("name", VENDORS)
def test_the_environment_does_not_say_where_the_key_goes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{name.upper()}_BASE_URL", "http://elsewhere.example")
    sender = SENDERS[name](KEY)
    assert str(sender._client.base_url).rstrip("/") == sender.url and f"api.{name}.com" in sender.url
    sender.close()


@pytest.mark.parametrize("url", ["http://elsewhere.example", "ftp://127.0.0.1", "https://a:b@c.example", "elsewhere"])
def test_a_key_is_not_sent_in_the_clear(url: str) -> None:
    with pytest.raises(ConfigError, match="--base-url"):
        place(url, "https://api.example")
    assert place("http://127.0.0.1:8000", "https://api.example") == "http://127.0.0.1:8000"
