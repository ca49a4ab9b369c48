"""`toolcrib verify`: what holds on the shop, the freight example and the company; exit codes; nothing is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.verify import places
from toolcrib.cli.main import app
from toolcrib.errors import ConfigError


def run(folder: Path, *line: str) -> tuple[int, dict[str, Any]]:
    """Exit code and the JSON report."""
    done = CliRunner().invoke(app, ["-C", str(folder), "verify", *line, "--json"])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, json.loads(done.stdout)


def test_isolation_holds_in_the_shop_over_every_surface(shop: Path) -> None:
    code, report = run(shop, "isolation")
    assert (code, report["holds"], report["counterexample"]) == (0, True, None)
    assert report["callers"] == ["ann", "val"]
    assert {name.split()[0] for name in report["surfaces"]} == {"library", "mcp", "http", "cli"}
    assert report["worlds"] == 4  # two callers; all of it removed, and all other kinds of changes at once
    assert report["comparisons"] > 500
    assert report["bytes"] > 100_000


def test_thorough_isolation_tries_each_kind_of_change_alone(shop: Path) -> None:
    code, report = run(shop, "isolation", "--thorough", "--callers", "1")
    assert code == 0
    assert {"removed", "added", "changed", "described", "states", "added 2", "states 2"} <= set(report["variants"])


def test_parity_holds_in_the_shop(shop: Path) -> None:
    code, report = run(shop, "parity")
    assert (code, report["holds"]) == (0, True)
    assert (report["listed"], report["hidden"]) == (5 + 9, 5 + 1)
    assert report["found_by_id_only"] == {"n": 0, "tools": []}


@pytest.mark.parametrize("proof", ["isolation", "parity"])
def test_both_hold_where_tools_are_renamed_deprecated_and_retired(tmp_path: Path, proof: str) -> None:
    folder = places.shop(tmp_path / "shop", toml=places.SHOP_TOML + places.PAST_TOML)
    code, report = run(folder, proof)
    assert code == 0, report


def test_isolation_holds_in_the_freight_example(freight: Path) -> None:
    code, report = run(freight, "isolation", "--callers", "2")
    assert (code, report["holds"]) == (0, True)
    assert report["tools"] == 207
    assert report["edits"] > 400


def test_parity_holds_in_the_freight_example(freight: Path) -> None:
    code, report = run(freight, "parity", "--callers", "3")
    assert (code, report["holds"]) == (0, True)
    assert report["hidden"] > 400


def test_the_made_up_company_holds(made_up_company: Path) -> None:
    code, report = run(made_up_company, "isolation", "--callers", "1")
    assert (code, report["callers_in_all"]) == (0, 432)
    code, report = run(made_up_company, "parity", "--callers", "3", "--sample", "40")
    assert code == 0


@pytest.mark.shared
def test_the_company_over_real_tools_is_isolated(real_company: Path) -> None:
    code, report = run(real_company, "isolation", "--callers", "1")
    assert (code, report["holds"], report["callers_in_all"]) == (0, True, 432)
    assert report["tools"] > 3_900
    assert report["edits"] > 2_000


@pytest.mark.shared
def test_the_company_over_real_tools_has_parity(real_company: Path) -> None:
    code, report = run(real_company, "parity", "--callers", "2", "--sample", "40")
    assert (code, report["holds"]) == (0, True)


def test_the_same_seed_gives_the_same_report(made_up_company: Path) -> None:
    line = ("parity", "--callers", "2", "--sample", "5", "--seed", "3")
    assert run(made_up_company, *line) == run(made_up_company, *line)


def test_without_profiles_it_says_what_to_do_and_exits_with_2(shop: Path) -> None:
    done = CliRunner().invoke(app, ["-C", str(shop), "verify", "isolation", "--profiles", "nowhere"])
    assert isinstance(done.exception, ConfigError)  # `main` makes exit code 2 of it
    assert "--profiles" in str(done.exception)


def test_isolation_with_nothing_to_try_proves_nothing_and_exits_with_2(tmp_path: Path) -> None:
    folder = places.archive(tmp_path, {"root": {"roles": ["root"], "region": "eu"}})
    done = CliRunner().invoke(app, ["-C", str(folder), "verify", "isolation"])
    assert isinstance(done.exception, ConfigError)
    assert "nothing was tried" in str(done.exception) and "root" in str(done.exception)


def test_callers_from_whom_nothing_is_hidden_are_named_and_not_counted(tmp_path: Path) -> None:
    folder = places.archive(tmp_path, {"ann": {}, "root": {"roles": ["root"], "region": "eu"}})
    code, report = run(folder, "isolation")
    assert (code, report["untried"], report["callers"]) == (0, ["root"], ["ann", "root"])
    done = CliRunner().invoke(app, ["-C", str(folder), "verify", "isolation"])
    assert "not discover: ann (1 of 2)" in done.stdout and "no tool from them: root" in done.stdout


def test_the_operator_s_folder_is_not_touched(shop: Path) -> None:
    def state() -> dict[str, tuple[int, int]]:
        files = [file for file in shop.rglob("*") if file.is_file() and file.suffix not in (".db-shm", ".db-wal")]
        return {str(file): (file.stat().st_mtime_ns, file.stat().st_size) for file in files}

    before = state()
    run(shop, "isolation", "--callers", "1")
    run(shop, "parity", "--callers", "1")
    assert state() == before


def test_people_are_told_in_words(shop: Path) -> None:
    done = CliRunner().invoke(app, ["-C", str(shop), "verify", "parity"])
    assert done.exit_code == 0
    assert "one set for ann, val" in done.stdout
