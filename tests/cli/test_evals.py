"""`toolcrib eval`: a folder without a crib, cases with one, gates, runs kept and compared, drafts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.evals.making import shop_set, write_lines
from tests.evals.test_against import Fixed
from tests.flow.worlds import World, tool
from toolcrib.cli.main import app
from toolcrib.errors import ConfigError

SHOP = [
    tool("get_order", "Look up one order by its number."),
    tool("issue_refund", "Return money to a customer for an order."),
]
CASES = [
    {"id": "look", "task": "look up one order by its number", "expect": [["shop.get_order"]], "tags": ["orders"]},
    {"id": "money", "task": "return money to a customer", "expect": [["shop.issue_refund"]], "tags": ["money"]},
    {"id": "none", "task": "knit a scarf for my nephew", "expect": None},
]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    one = World(tmp_path / "crib", {"shop": SHOP})
    write_lines(one.folder / "cases.jsonl", CASES)
    yield one
    one.close()


def ran(folder: Path, *words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["-C", str(folder), "eval", *words])
    assert done.exit_code == code, (done.output, done.exception)
    return json.loads(done.stdout) if "--json" in words else done


def test_a_labelled_folder_needs_no_crib(tmp_path: Path) -> None:
    shop_set(tmp_path / "shop")
    told = ran(tmp_path, "shop", "--json")
    assert told["metrics"]["recall@5"] == 1.0
    assert told["n_cases"] == 5
    assert told["baselines"] == {}
    assert ran(tmp_path, "run", "shop", "--json", "--k", "2,3")["metrics"].keys() >= {"recall@2", "completeness@3"}
    assert not (tmp_path / ".toolcrib").exists()


def test_cases_are_asked_of_the_crib(world: World) -> None:
    told = ran(world.folder, "cases.jsonl", "--json")
    assert told["metrics"]["recall@1"] == 1.0
    assert told["metrics"]["refusal_auroc"] == 1.0
    assert set(told["by_tag"]) == {"orders", "money"}
    assert told["stages"]["registry"]["in_service"] == 1.0
    assert "recall@5" in ran(world.folder, "cases.jsonl").stdout


def test_several_paths_are_sets_beside_each_other(world: World) -> None:
    shop_set(world.folder / "shop")
    told = ran(world.folder, "cases.jsonl", "shop", "shop", "--json", "--sample", "1")
    assert set(told["sets"]) == {"cases", "shop", "shop (2)"}
    assert told["n_cases"] == 6


def test_a_gate_exits_1_with_what_fell_short(world: World) -> None:
    gate = world.folder / "gate.toml"
    gate.write_text('[metrics]\n"recall@5" = { min = 0.9 }\n', encoding="utf-8")
    assert ran(world.folder, "cases.jsonl", "--gate", "gate.toml", "--json")["gate"] == {"held": True, "fell_short": []}
    gate.write_text('[tags.orders]\nmrr = { max = 0.9 }\n', encoding="utf-8")  # fmt: skip
    told = ran(world.folder, "cases.jsonl", "--gate", "gate.toml", "--json", code=1)
    assert told["gate"]["fell_short"] == ["tags.orders mrr is 1, at most 0.9 is asked"]


def test_a_run_is_kept_compared_and_drawn(world: World) -> None:
    ran(world.folder, "cases.jsonl", "--save", "run.json")
    world.write("shop", SHOP[:1])
    world.refresh()
    told = ran(world.folder, "cases.jsonl", "--compare", "run.json", "--html", "page.html", "--json")
    assert {(world.folder / name).stat().st_mode & 0o777 for name in ("run.json", "page.html")} == {0o600}
    assert [case["id"] for case in told["compare"]["worse"]] == ["money"]
    assert told["stages"]["lost"] == {"registry": 1}
    page = (world.folder / "page.html").read_text(encoding="utf-8")
    assert "Against the run before" in page and "return money to a customer" in page


def test_what_a_caller_may_not_know_of_makes_the_run_fail(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolcrib.evals import run as running

    monkeypatch.setattr(running, "exposed", lambda *_given, **_more: ("names: shop.hidden",))
    told = ran(world.folder, "cases.jsonl", "--json", code=1)
    assert told["stages"]["exposure"]["total"] == 3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nothing.jsonl"], "cannot be read"),
        (["."], "no tools.jsonl"),
        (["cases.jsonl", "--k", "0,5"], "--k takes numbers from 1 to 50"),
        (["cases.jsonl", "--gate", "nothing.toml"], "cannot be read"),
        (["cases.jsonl", "--compare", "cases.jsonl"], "not JSON"),
        (["init"], "there is such a file already"),
        (["cases.jsonl", "--embedder", "none"], "its own [retrieval]"),
        (["init", "--out", "new.jsonl", "--from-traces", "--since", "soon"], "--since takes a date, days or hours"),
    ],
    ids=["missing", "folder", "k", "gate", "compare", "exists", "embedder", "since"],
)
def test_what_cannot_be_used_is_said(world: World, words: list[str], told: str) -> None:
    done = CliRunner().invoke(app, ["-C", str(world.folder), "eval", *words])
    assert isinstance(done.exception, ConfigError)
    assert told in str(done.exception)


def test_baselines_may_stand_before_a_path(world: World) -> None:
    assert "baselines" in ran(world.folder, "--baselines", "cases.jsonl", "--json")


def test_baselines_run_and_those_that_are_not_here_say_why(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolcrib.evals import baselines

    fixed = Fixed("fixed", ["shop.get_order"])
    monkeypatch.setattr(baselines, "available", lambda names: [fixed] if names in ((), ("fixed", "gone")) else [])
    monkeypatch.setattr(baselines, "unavailable", lambda names: {"gone": "pip install gone"})
    for words in (["--baselines"], ["--baselines=fixed,gone"]):
        told = ran(world.folder, "cases.jsonl", *words, "--html", "page.html", "--json")["baselines"]
        assert told["fixed"]["metrics"]["recall@5"] == 0.5
        assert told["gone"]["failed"] == "pip install gone"
    assert "pip install gone" in (world.folder / "page.html").read_text(encoding="utf-8")
    assert "pip install gone" in ran(world.folder, "cases.jsonl", "--baselines").output


def test_the_table_compares_every_way_at_equal_tokens(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolcrib.evals import baselines

    monkeypatch.setattr(baselines, "available", lambda _names: [Fixed("fixed", ["shop.get_order"])])
    monkeypatch.setattr(baselines, "unavailable", lambda _names: {})
    told = ran(world.folder, "cases.jsonl", "--baselines").stdout
    table = told[told.index("at equal tokens of definitions") :]
    assert "1k tokens" in table and "8k tokens" in table
    rows = [re.findall(r"[0-9]+[.][0-9]", line) for line in table.splitlines() if "all that a task needs" in line]
    assert rows == [["100.0"] * 4, ["50.0"] * 4]
    assert "tasks for several tools" not in table  # no case needs two


def test_init_drafts_a_file_that_runs(world: World) -> None:
    told = ran(world.folder, "init", "--n", "6", "--out", "drafts.jsonl", "--json")
    assert told["cases"] >= 2
    run = ran(world.folder, "drafts.jsonl", "--json")
    assert run["n_cases"] == told["cases"]
    assert any("are drafts" in note for note in run["notes"])


def test_a_tool_id_that_nobody_has_is_named_with_the_nearest(world: World) -> None:
    slip = {"id": "slip", "task": "return money", "expect": [["shop.issue_refund"]], "forbid": ["shop.issue_refunt"]}
    write_lines(world.folder / "slips.jsonl", [slip])
    notes = ran(world.folder, "slips.jsonl", "--json")["notes"]
    assert any("`forbid` names shop.issue_refunt" in note and "shop.issue_refund?" in note for note in notes)


def test_init_takes_real_requests_from_traces(world: World) -> None:
    world.crib.select("look up one order by its number")
    world.call("shop.get_order")
    told = ran(world.folder, "init", "--from-traces", "--since", "48h", "--out", "real.jsonl", "--json")
    assert (world.folder / "real.jsonl").stat().st_mode & 0o777 == 0o600  # callers' words
    assert told["cases"] == 1
    assert ran(world.folder, "real.jsonl", "--json")["metrics"]["recall@5"] == 1.0
    late = CliRunner().invoke(
        app, ["-C", str(world.folder), "eval", "init", "--from-traces", "--since", "2999-01-01", "--out", "x.jsonl"]
    )
    assert isinstance(late.exception, ConfigError)
