"""Doctor tells what is well and what is not, and each trouble costs its own line."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.flow.test_review_desk import ORDER, REFUND, runs
from tests.flow.worlds import World, tool
from toolcrib.cli.exposition import Gauge, exposition, gauges
from toolcrib.cli.main import app
from toolcrib.doctoring import examined
from toolcrib.errors import ConnectorError, StoreError
from toolcrib.store.sqlite import SqliteStore
from toolcrib.types import Provenance, ProvenanceKind, ServerStatus


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    one = World(tmp_path, {"shop": [ORDER, REFUND], "hub": [tool("list_repos", "List repositories.")]})
    yield one
    one.close()


def doctor(world: World, *words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["-C", str(world.folder), "doctor", *words])
    assert done.exit_code == code, (done.output, done.exception)
    return json.loads(done.stdout) if "--json" in words else done


def wrong(told: Any) -> list[str]:
    return [check["name"] for check in told["checks"] if check["state"] == "wrong"]


def fails(world: World, server_id: str, *, pages_read: int = 0) -> None:
    async def listed() -> Any:
        raise ConnectorError("it broke", pages_read=pages_read)

    world.servers[server_id].list_tools = listed  # type: ignore[method-assign]
    world.refresh()


def test_a_crib_in_order_is_well(world: World) -> None:
    told = doctor(world, "--json")
    assert (told["well"], wrong(told), told["n_in_service"]) == (True, [], 3)
    assert [(s["server_id"], s["state"], s["n_in_service"]) for s in told["servers"]] == [
        ("shop", "fresh", 2),
        ("hub", "fresh", 1),
    ]
    assert "well" in doctor(world).stderr


@pytest.mark.parametrize(("pages_read", "state"), [(0, "stale"), (2, "partial")])
def test_a_list_that_could_not_be_taken_is_wrong_and_its_tools_still_serve(
    world: World, pages_read: int, state: str
) -> None:
    fails(world, "hub", pages_read=pages_read)
    told = doctor(world, "--json", code=1)
    hub = next(s for s in told["servers"] if s["server_id"] == "hub")
    assert (hub["state"], hub["n_in_service"], hub["is_wrong"]) == (state, 1, True)
    assert "it broke" in hub["error"]
    assert "it broke" in doctor(world, code=1).stdout


def test_a_server_that_was_never_listed_is_missing(world: World) -> None:
    config = world.folder / "toolcrib.toml"
    row = '[[servers]]\nid = "new"\ntransport = "file"\npath = "new.json"\n'
    config.write_text(config.read_text(encoding="utf-8") + row, encoding="utf-8")
    told = doctor(world, "--json", code=1)
    assert [(s["state"], s["age_s"]) for s in told["servers"] if s["server_id"] == "new"] == [("missing", None)]


def test_a_changed_package_is_wrong_and_an_unpinned_launcher_is_told_with_its_advice(world: World) -> None:
    runs(world, "shop", "1.0.0", pinned=False, advice="npx -y shop-mcp@1.0.0")
    told = doctor(world, "--json")
    assert next(s for s in told["servers"] if s["server_id"] == "shop")["provenance"] == "unpinned"
    assert "use npx -y shop-mcp@1.0.0" in doctor(world).stdout
    CliRunner().invoke(app, ["-C", str(world.folder), "approve", "--server", "shop"])
    runs(world, "shop", "1.1.0")
    told = doctor(world, "--json", code=1)
    shop = next(s for s in told["servers"] if s["server_id"] == "shop")
    assert (shop["provenance"], shop["withheld"]) == ("changed", {"provenance": 2})
    assert "version was 1.0.0, is 1.1.0" in doctor(world, code=1).stdout


def test_nobody_starts_a_remote_server_so_its_next_start_fetches_nothing(world: World) -> None:
    remote = ServerStatus(
        server_id="web",
        state="fresh",
        n_tools=0,
        provenance=Provenance(kind=ProvenanceKind.REMOTE, origin="https://web.example/mcp", pinned=False),
    )
    world.crib.store.publish(lambda before: replace(before, publication_id="p", servers=(*before.servers, remote)))
    config = world.folder / "toolcrib.toml"
    row = '[[servers]]\nid = "web"\ntransport = "http"\nurl = "https://web.example/mcp"\n'
    config.write_text(config.read_text(encoding="utf-8") + row, encoding="utf-8")
    told = doctor(world, "--json")
    assert next(s["launcher_pinned"] for s in told["servers"] if s["server_id"] == "web") is None
    assert (
        "web"
        not in json.loads(
            CliRunner().invoke(app, ["-C", str(world.folder), "lock", "check", "--catalog", "--json"]).stdout
        )["unpinned"]
    )


def test_numbers_that_cannot_be_written_leave_nothing_behind(world: World) -> None:
    (world.folder / "numbers").mkdir()
    doctor(world, "--prometheus", "numbers", code=1)
    assert not [path for path in world.folder.iterdir() if path.name.startswith(".numbers.")]


def test_a_command_that_changed_since_the_list_was_taken_is_wrong_before_anything_is_started(tmp_path: Path) -> None:
    server = Path(__file__).parent.parent / "connectors" / "servers" / "rude.py"
    script = json.dumps({"pages": [[None, '{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}']]})

    def configure(*more: str) -> None:
        words = json.dumps([sys.executable, str(server), script, *more])
        row = f'[[servers]]\nid = "s"\ntransport = "stdio"\ncommand = {words}\n'
        (tmp_path / "toolcrib.toml").write_text(row, encoding="utf-8")

    def shown() -> dict[str, Any]:
        done = CliRunner().invoke(app, ["-C", str(tmp_path), "doctor", "--json"])
        return next(iter(json.loads(done.stdout)["servers"]))

    configure()
    for words in (["refresh"], ["approve", "--all"]):
        assert CliRunner().invoke(app, ["-C", str(tmp_path), *words]).exit_code == 0
    assert (shown()["reconfigured"], shown()["is_wrong"]) == ([], False)
    configure("--to", "evil.example")
    assert (shown()["reconfigured"], shown()["is_wrong"]) == (["arguments"], True)


def damage_lock(world: World) -> None:
    (world.folder / "toolcrib.lock").write_text("{", encoding="utf-8")


def damage_policy(world: World) -> None:
    (world.folder / "policy.cedar").write_text("permit (", encoding="utf-8")
    config = world.folder / "toolcrib.toml"
    text = config.read_text(encoding="utf-8").replace("[crib]", '[crib]\npolicy = "policy.cedar"')
    config.write_text(text, encoding="utf-8")


def damage_log(world: World) -> None:
    store = world.crib.store
    assert isinstance(store, SqliteStore)
    with store._transaction() as db:
        db.execute("DROP TRIGGER reviews_are_final")
        db.execute("UPDATE reviews SET reviewer = 'eve' WHERE n = 1")


def reject_all(world: World) -> None:
    world.crib.reject(["shop.get_order", "shop.issue_refund", "hub.list_repos"], reviewer="ann")


def lose_calibration(world: World) -> None:
    config = world.folder / "toolcrib.toml"
    row = '[retrieval]\ncalibration = "none.json"\nlearned = "none.json"\n'
    config.write_text(config.read_text(encoding="utf-8") + row, encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "names"),
    [
        (damage_lock, {"catalog", "lock", "serving"}),
        (damage_policy, {"serving"}),
        (damage_log, {"review log"}),
        (reject_all, {"tools"}),
        (lose_calibration, {"calibration", "learned"}),
    ],
    ids=["lock", "policy", "log", "nothing-in-service", "calibration"],
)
def test_each_trouble_has_its_own_line_and_costs_no_other(
    world: World, damage: Callable[[World], None], names: set[str]
) -> None:
    damage(world)
    told = doctor(world, "--json", code=1)
    assert set(wrong(told)) == names
    assert {"settings"} <= {check["name"] for check in told["checks"] if check["state"] == "well"}


def test_what_waits_is_noted_and_wrongs_nothing(world: World) -> None:
    world.write("hub", [tool("list_repos", "List repositories."), tool("new", "New.")])
    world.refresh()
    told = doctor(world, "--json")
    assert [c["told"] for c in told["checks"] if c["name"] == "tools"] == ["waiting for a reviewer: 1"]


def test_a_lost_store_cannot_be_looked_at(world: World) -> None:
    world.close()
    for file in (world.folder / ".toolcrib").glob("store.db*"):
        file.write_bytes(b"no database" * 100)
    done = CliRunner().invoke(app, ["-C", str(world.folder), "doctor"])
    assert isinstance(done.exception, StoreError)  # exit code 3, as `main` has it


def test_the_age_of_a_list_is_told(world: World) -> None:
    later = datetime.now(UTC) + timedelta(hours=5)
    assert [round((s.age_s or 0) / 3_600) for s in examined(world.crib, now=later).servers] == [5, 5]


# --- numbers


_LABEL = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'
_SAMPLE = re.compile(rf"([a-z_]+(?:\{{{_LABEL}(?:,{_LABEL})*\}})?) (\S+)")


def parsed(text: str) -> dict[str, float]:
    """The samples of a text in the exposition format, strictly read."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = _SAMPLE.fullmatch(line)
            assert match, line
            found[match[1]] = float(match[2])
    assert text.endswith("\n")
    return found


def test_the_numbers_say_what_the_page_says(world: World) -> None:
    runs(world, "shop", "1.0.0")
    CliRunner().invoke(app, ["-C", str(world.folder), "approve", "--server", "shop"])
    runs(world, "shop", "1.1.0")
    fails(world, "hub")
    found = parsed(doctor(world, "--prometheus", "-", code=1).stdout)
    assert (found["toolcrib_well"], found["toolcrib_servers_wrong"]) == (0, 2)
    assert found['toolcrib_server_state{server="hub",state="stale"}'] == 1
    assert found['toolcrib_server_state{server="hub",state="fresh"}'] == 0
    assert found['toolcrib_provenance_ok{server="shop"}'] == 0
    assert found['toolcrib_tools{server="shop",code="provenance"}'] == 2
    assert found['toolcrib_tools{server="hub",code="in_service"}'] == 1
    assert found["toolcrib_review_chain_ok"] == 1
    assert found['toolcrib_list_age_seconds{server="hub"}'] >= 0


def test_a_collector_finds_the_whole_file_beside_the_page(world: World) -> None:
    (world.folder / "out.prom").write_text("old\n", encoding="utf-8")
    assert "well" in doctor(world, "--prometheus", "out.prom").stderr
    assert parsed((world.folder / "out.prom").read_text(encoding="utf-8"))["toolcrib_well"] == 1
    assert [path.name for path in world.folder.glob(".out.prom*")] == []
    done = CliRunner().invoke(app, ["-C", str(world.folder), "doctor", "--prometheus", "no/such/out.prom"])
    assert "cannot be written" in str(done.exception)
    assert CliRunner().invoke(app, ["-C", str(world.folder), "doctor", "--json", "--prometheus", "-"]).exception


def test_labels_are_escaped() -> None:
    text = exposition([Gauge(name="x", help='a\n"b"\\', values=[({"server": 'a"b\\c\nd'}, 1), ({}, 0.5)])])
    assert text == '# HELP x a\\n"b"\\\\\n# TYPE x gauge\nx{server="a\\"b\\\\c\\nd"} 1\nx 0.5\n'


def test_large_numbers_keep_their_digits(world: World) -> None:
    health = examined(world.crib)
    old = replace(health, servers=(replace(health.servers[0], age_s=12_345_678.0),))
    assert 'toolcrib_list_age_seconds{server="shop"} 12345678\n' in exposition(gauges(old))
