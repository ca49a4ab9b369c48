"""The freight story through a crib and the real server process: who finds what, what runs, what is refused and how."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from freight_desk.records import Records

from toolcrib.crib import Crib
from toolcrib.identity.callers import caller_from_file
from toolcrib.types import Caller, Code, Outcome

EXAMPLE = Path(__file__).parents[2] / "examples" / "freight"
FRESH = shutil.ignore_patterns(".toolcrib", "toolcrib.lock", "freight-state.json", "__pycache__")
REQUEST = "Why is S-204 held? Draft an internal note."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example, so that nothing is left in the original."""
    copy = tmp_path_factory.mktemp("crib") / "freight"
    return Path(shutil.copytree(EXAMPLE, copy, ignore=FRESH))


@pytest.fixture
async def crib(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Crib]:
    """All tools approved, the seed records. The catalog is taken in once; each test has its own server process."""
    monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    (folder / "freight-state.json").unlink(missing_ok=True)
    async with Crib.open(folder) as opened:
        if not (folder / "toolcrib.lock").exists():
            report = await opened.refresh()
            assert not report.failed, report.failed
            opened.approve(None, reviewer="test")
        yield opened


def person(folder: Path, name: str) -> Caller:
    return caller_from_file(folder / "callers" / f"{name}.json", environment="production", region="eu")


def names(offer: Any) -> list[str]:
    return [chosen.tool.name for chosen in offer.tools]


def records(folder: Path) -> Records:
    return Records(folder / "freight-state.json")


async def test_about_two_hundred_tools_and_two_dozen_for_mara(crib: Crib, folder: Path) -> None:
    assert 190 <= len(crib.snapshot().tools) <= 220
    assert 20 <= len(crib.tools(person(folder, "mara"))) <= 28


async def test_the_held_shipment_is_found_then_what_customs_wants_and_never_billing(crib: Crib, folder: Path) -> None:
    mara = person(folder, "mara")
    first = crib.select(REQUEST, caller=mara)
    assert first.outcome is Outcome.SELECTED
    offered = names(first)
    assert offered[0] == "internal_note_draft"
    assert "shipment_get" in offered
    second = crib.select("Which papers does customs still need for S-204?", caller=mara)
    assert names(second)[0] == "customs_requirements_get"
    assert "billing_hold_get" not in names(first) + names(second)


async def test_the_note_is_drafted_and_nothing_is_cleared(crib: Crib, folder: Path) -> None:
    mara = person(folder, "mara")
    held = await crib.call("freight.shipment_get", {"shipment_id": "S-204"}, caller=mara)
    assert held.result is not None
    assert [hold["kind"] for hold in held.result.structured["holds"]] == ["CUSTOMS"]
    note = {"shipment_id": "S-204", "body": "Customs waits for two papers."}
    drafted = await crib.call("freight.internal_note_draft", note, caller=mara)
    cleared = await crib.call("freight.hold_clear", {"hold_id": "H-31", "reason": "in a hurry"}, caller=mara)
    assert (held.code, drafted.code, cleared.code) == (Code.OK, Code.OK, Code.NOT_AVAILABLE)
    kept = records(folder)
    assert [(n["status"], n["body"]) for n in kept.where("notes", shipment_id="S-204")] == [("draft", note["body"])]
    assert kept.get("holds", "H-31")["status"] == "active"
    assert [row["tool"] for row in kept.rows("audit")] == ["internal_note_draft"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("shipment_get", {"shipment_id": "S-517"}),
        ("customs_requirements_get", {"shipment_id": "S-517"}),
        ("hold_get", {"hold_id": "H-52"}),
        ("shipment_list", {"account_id": "A-20"}),
        ("container_locate", {"container_no": "TCLU9038112"}),
        ("internal_note_get", {"note_id": "NOTE-2"}),
        ("internal_note_draft", {"shipment_id": "S-517", "body": "Not ours."}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_another_customer_s_record_is_refused_like_one_that_does_not_exist(
    crib: Crib, folder: Path, tool: str, arguments: dict[str, str]
) -> None:
    mara = person(folder, "mara")
    assert f"freight.{tool}" in {known.tool_id for known in crib.tools(mara)}
    theirs = await crib.call(f"freight.{tool}", arguments, caller=mara)
    nobody_s = {name: value if name == "body" else _unknown(value) for name, value in arguments.items()}
    missing = await crib.call(f"freight.{tool}", nobody_s, caller=mara)
    assert (theirs.code, theirs.verdict.check) == (Code.NOT_AVAILABLE, "resource")
    assert _told(theirs) == _told(missing)
    assert not (folder / "freight-state.json").exists()


def _unknown(record_id: str) -> str:
    return f"{record_id.split('-')[0]}-99999" if "-" in record_id else f"{record_id[:-3]}999"


def _told(outcome: Any) -> str:
    return json.dumps({name: value for name, value in outcome.to_dict().items() if name != "trace_id"})


async def test_the_owner_of_the_record_is_let_through(crib: Crib, folder: Path) -> None:
    theirs = await crib.call("freight.shipment_get", {"shipment_id": "S-517"}, caller=person(folder, "jon"))
    assert theirs.code is Code.OK


async def test_a_call_that_names_no_customer_s_record_needs_no_owner(crib: Crib, folder: Path) -> None:
    found = await crib.call("freight.hs_code_search", {"query": "pumps"}, caller=person(folder, "mara"))
    assert found.code is Code.OK and found.result is not None and found.result.structured["total"] == 2


async def test_the_lookup_tools_of_the_gate_are_nobody_s_to_find_or_call(crib: Crib, folder: Path) -> None:
    for path in sorted((folder / "callers").glob("*.json")):
        caller = person(folder, path.stem)
        assert not [tool.name for tool in crib.tools(caller) if tool.name.endswith("_owner_lookup")]
        asked = await crib.call("freight.shipment_owner_lookup", {"shipment_id": "S-204"}, caller=caller)
        assert asked.code is Code.NOT_AVAILABLE
