"""The freight example's own policy tests, on the catalog as its server lists it. Starts no server."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from freight_desk.catalog import ALL
from typer.testing import CliRunner

from tests.flow.worlds import ServedFile, says_done
from toolcrib.cli.main import app
from toolcrib.crib import Crib
from toolcrib.policy.rules import rules_of
from toolcrib.policy_desk import PolicyDesk

EXAMPLE = Path(__file__).parents[2] / "examples" / "freight"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example with everything that its server lists approved."""
    copy = tmp_path_factory.mktemp("freight")
    for name in ("toolcrib.toml", "policy.cedar", "policy_tests.toml"):
        shutil.copy(EXAMPLE / name, copy / name)
    shutil.copytree(EXAMPLE / "callers", copy / "callers")
    listing = copy / "freight.tools.json"
    listing.write_text(json.dumps({"tools": [tool.definition() for tool in ALL]}), encoding="utf-8")

    async def fill() -> None:
        async with Crib.open(copy, connectors={"freight": ServedFile(listing, says_done)}) as crib:
            await crib.refresh()
            crib.approve(None, reviewer="tests")

    asyncio.run(fill())
    return copy


@pytest.fixture
def desk(folder: Path) -> Iterator[PolicyDesk]:
    with PolicyDesk.open(folder) as one:
        yield one


def test_every_case_of_the_example_holds(desk: PolicyDesk) -> None:
    results = desk.run_tests(EXAMPLE / "policy_tests.toml", desk.policy())
    assert len(results) > 10
    assert [(result.case.name, result.misses) for result in results if not result.passed] == []


def test_the_cases_notice_an_open_door(desk: PolicyDesk, tmp_path: Path) -> None:
    door = tmp_path / "open.cedar"
    door.write_text("permit (principal, action, resource);", encoding="utf-8")
    results = desk.run_tests(EXAMPLE / "policy_tests.toml", desk.policy(door))
    assert sum(not result.passed for result in results) > 5


def test_the_policy_has_no_odd_rules(desk: PolicyDesk) -> None:
    found = [(f.code, f.note) for f in desk.check(desk.policy())]
    assert ("unreachable", False) in found, "most of the company's tools are for people whom no profile describes"
    assert ("not_tried", True) in found, "the rule about holds is for the policy tests to try"
    assert [code for code, note in found if not note] == ["unreachable"]


def test_the_policy_is_the_built_in_one_and_two_rules_more() -> None:
    text = (EXAMPLE / "policy.cedar").read_text("utf-8")
    here = {rule.label: rule.text for rule in rules_of(text, source="policy.cedar")}
    built_in = {rule.label: rule.text for rule in rules_of(None, source="built-in")}
    assert {label: here.get(label) for label in built_in} == built_in
    assert here.keys() - built_in.keys() == {"hold-of-another-desk", "shift-leads-approve"}


def test_the_commands_say_the_same(folder: Path) -> None:
    tested = CliRunner().invoke(app, ["-C", str(folder), "policy", "test"])
    checked = CliRunner().invoke(app, ["-C", str(folder), "policy", "check", "--json"])
    assert tested.exit_code == 0, tested.output
    findings = [row for row in json.loads(checked.stdout)["findings"] if not row["note"]]
    assert checked.exit_code == 1 and [row["code"] for row in findings] == ["unreachable"]
    assert "freight.record_owner_lookup" in findings[0]["tools"], "the gate's own tools are meant to be out of reach"
