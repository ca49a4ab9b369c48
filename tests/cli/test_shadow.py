"""`toolcrib shadow` and `toolcrib trace replay`: keys, tables and exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.evals.test_page import read
from tests.flow.test_shadow import ANN, BOB, NO_DELETE, OPEN, READ, SHADOW, SHOP, candidate
from tests.flow.worlds import World
from toolcrib.cli.main import app
from toolcrib.cli.since import since_when
from toolcrib.errors import ConfigError


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    one = World(tmp_path, SHOP, toml=READ + SHADOW, policy=OPEN)
    candidate(one, '[crib]\nname = "x"\npolicy = "stricter.cedar"\n')
    (one.folder / "stricter.cedar").write_text(NO_DELETE, encoding="utf-8")
    yield one
    one.close()


def run(world: World, *words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["-C", str(world.folder), *words])
    assert done.exit_code == code, (done.output, done.exception)
    return json.loads(done.stdout) if "--json" in words else done.output


def used(world: World) -> str:
    """Two selects and a call of what only one of them offers; the id of the first."""
    trace_id = world.crib.select("delete an order for good", caller=ANN).trace_id
    world.call("shop.delete_order", {"order_id": "1"}, caller=ANN)
    world.crib.select("send a mail to a customer", caller=BOB)
    assert world.crib.shadow.drain(timeout_s=60)
    return trace_id


def test_report_prints_figures_and_the_verdict(world: World) -> None:
    trace_id = used(world)
    (world.folder / "release.toml").write_text("[shadow]\nmin_compared = 2\nmax_lost_calls = 0\n", encoding="utf-8")
    told = run(world, "shadow", "report", "--since", "1d", "--thresholds", "release.toml", "--json", code=1)
    assert (told["n_compared"], told["n_labelled"], told["calls"]["lost"]) == (2, 1, 1.0)
    assert [(one["name"], one["holds"]) for one in told["thresholds"]] == [
        ("min_compared", True),
        ("max_lost_calls", False),
    ]
    assert told["holds"] is False
    assert told["disagreements"][0]["trace_id"] == trace_id
    assert told["reach"]["lost"][0]["callers"] == ["ann", "bob (acme)"]
    text = run(world, "shadow", "report", "--since", "1d", "--thresholds", "release.toml", code=1)
    assert "FAILS: lost_calls is 1, at most 0 is asked" in text
    assert "holds: compared is 2" in text
    (world.folder / "release.toml").write_text("[shadow]\nmin_compared = 2\n", encoding="utf-8")
    assert "holds: compared" in run(world, "shadow", "report", "--since", "1d", "--thresholds", "release.toml")
    told = run(world, "shadow", "report", "--json")
    assert (told["holds"], told["thresholds"]) == (None, [])


def test_report_without_records_says_so(world: World) -> None:
    assert "nothing was compared" in run(world, "shadow", "report")


def test_report_with_shadow_mode_off_says_so_in_words_and_exits_0(tmp_path: Path) -> None:
    world = World(tmp_path, SHOP, toml=READ, policy=OPEN)
    text = run(world, "shadow", "report", "--html", "page.html")
    page = read((world.folder / "page.html").read_text(encoding="utf-8"))
    world.close()
    for told in (text, page.text):
        assert "shadow mode is off" in told and "nothing was compared" in told
    assert not re.search(r"(^|[\s│])-([\s│]|$)", text), "no figure, hence no dash in its place"
    assert "table" not in {tag for tag, _attrs in page.tags}


def test_nothing_compared_holds_no_threshold(world: World) -> None:
    (world.folder / "release.toml").write_text("[shadow]\nmin_compared = 1\n", encoding="utf-8")
    assert "FAILS: compared is 0" in run(world, "shadow", "report", "--thresholds", "release.toml", code=1)


def test_the_page_has_the_report_and_is_for_its_owner_alone(world: World) -> None:
    trace_id = used(world)
    (world.folder / "release.toml").write_text("[shadow]\nmax_lost_calls = 0\n", encoding="utf-8")
    words = ("shadow", "report", "--thresholds", "release.toml", "--html", "page.html")
    assert "the page is in" in run(world, *words, code=1)
    path = world.folder / "page.html"
    html = path.read_text(encoding="utf-8")
    page = read(html)
    assert path.stat().st_mode & 0o777 == 0o600
    for told in ("Fails: lost_calls is 1", "2 selects compared", "shop.delete_order", "bob (acme)", trace_id[:12]):
        assert told in page.text, told
    assert "candidate.toml" in page.text and ">-<" not in html


def test_a_page_that_cannot_be_written_is_an_error_of_usage(world: World) -> None:
    done = CliRunner().invoke(app, ["-C", str(world.folder), "shadow", "report", "--html", "gone/page.html"])
    assert isinstance(done.exception, ConfigError)


def test_status_says_what_is_tried_and_what_is_ignored(world: World) -> None:
    used(world)
    told = run(world, "shadow", "status", "--json")
    assert (told["on"], told["candidate"], told["present"], told["share"]) == (True, "candidate.toml", "crib", 1.0)
    assert (told["taken"], told["ignored"], told["fault"]) == (["crib.policy"], ["crib.name"], "")
    assert (told["n_compared"], told["n_failed"], told["n_dropped"]) == (2, 0, 0)
    assert "without effect: crib.name" in run(world, "shadow", "status")


def test_status_of_a_broken_candidate_exits_1(world: World) -> None:
    (world.folder / "stricter.cedar").write_text("permit oops", encoding="utf-8")
    used(world)
    told = run(world, "shadow", "status", "--json", code=1)
    assert "stricter.cedar" in told["fault"]
    assert (told["n_failed"], told["last_fault"]["what"].split(":")[0]) == (2, "PolicySyntaxError")


def test_replay_of_one_trace(world: World) -> None:
    trace_id = used(world)
    assert "the same answer" in run(world, "trace", "replay", trace_id)
    (world.folder / "policy.cedar").write_text(NO_DELETE, encoding="utf-8")
    told = run(world, "trace", "replay", trace_id, "--json")
    assert (told["same"], told["others"], told["against"]) == (True, ["policy"], "recorded")
    told = run(world, "trace", "replay", trace_id[:8], "--present", "--json", code=1)
    lost = [change for change in told["changes"] if change["change"] == "lost"]
    assert [(change["tool_id"], change["stage"]) for change in lost] == [("shop.delete_order", "eligibility")]
    assert told["tokens"]["now"] < told["tokens"]["then"]
    text = run(world, "trace", "replay", trace_id[:8], "--present", code=1)
    assert "the difference begins at: policy" in text


def test_replay_of_some_time(world: World) -> None:
    used(world)
    (world.folder / "policy.cedar").write_text(NO_DELETE, encoding="utf-8")
    assert run(world, "trace", "replay", "--since", "1d", "--json")["n_same"] == 2
    told = run(world, "trace", "replay", "--since", "1d", "--present", "--json", code=1)
    assert told["lost"] == {"shop.delete_order": told["n_different"]}
    assert told["different"][0]["outcome"] == {"then": "selected", "now": "selected"}
    assert "tools lost" in run(world, "trace", "replay", "--since", "1d", "--present", code=1)
    assert run(world, "trace", "replay", "--since", "2099-01-01", "--json")["n_same"] == 0


def test_replay_wants_a_trace_or_a_time(world: World) -> None:
    for words in (["trace", "replay"], ["trace", "replay", "abcdef", "--since", "1d"]):
        done = CliRunner().invoke(app, ["-C", str(world.folder), *words])
        assert isinstance(done.exception, ConfigError)


def test_moments() -> None:
    assert since_when("2026-11-01") == "2026-11-01T00:00:00.000000+00:00"
    assert since_when("2026-11-01T02:00:00+02:00") == "2026-11-01T00:00:00.000000+00:00"
    assert since_when("2d") < since_when("36h") < since_when("5m")
    for text in ("", "yesterday", "d", "1w", "999999999999d"):
        with pytest.raises(ConfigError):
            since_when(text)
