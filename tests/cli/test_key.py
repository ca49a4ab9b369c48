"""`toolcrib key` and `toolcrib revoke`: shown once, listed without secrets, ended at once."""

from __future__ import annotations

import json
import re
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toolcrib.cli.main import app
from toolcrib.errors import ConfigError
from toolcrib.settings import load_settings
from toolcrib.store.sqlite import SqliteStore
from toolcrib.types import Caller, Channel, Trace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "toolcrib.toml").write_text('[crib]\nname = "test"\nenvironment = "test"\n', encoding="utf-8")
    return tmp_path


def run(folder: Path, *words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["-C", str(folder), *words])
    assert done.exit_code == code, (done.output, done.exception)
    return json.loads(done.stdout) if "--json" in words else done


def who(folder: Path, key: str) -> Caller | None:
    from toolcrib.callers import Callers

    settings = load_settings(folder / "toolcrib.toml")
    store = SqliteStore(settings.store / "store.db")
    try:
        return Callers(lambda: settings, store).bearer(key)
    finally:
        store.close()


def test_a_key_is_made_printed_once_and_stands_for_its_caller(folder: Path) -> None:
    options = ("--subject", "bot", "--kind", "agent", "--tenant", "acme", "--role", "a", "--role", "b", "--scope", "s")
    done = run(folder, "key", "create", *options)
    key = done.stdout.strip()
    assert key.startswith("tck_") and "\n" not in key
    assert key.split("_", 2)[2] not in done.stderr
    assert who(folder, key) == Caller(
        subject="bot", kind="agent", tenant="acme", roles=frozenset("ab"), scopes=frozenset("s"), environment="test"
    )  # type: ignore[arg-type]
    listed = run(folder, "key", "list").stdout + json.dumps(run(folder, "key", "list", "--json"))
    assert key.split("_")[1] in listed
    assert key.split("_", 2)[2] not in listed
    assert "digest" not in listed
    assert key.encode() not in (folder / ".toolcrib" / "store.db").read_bytes()


def test_a_file_describes_the_caller_and_options_go_on_top(folder: Path) -> None:
    (folder / "ann.json").write_text('{"subject": "ann", "tenant": "acme", "region": "us"}', encoding="utf-8")
    made = run(folder, "key", "create", "--from", "ann.json", "--tenant", "globex", "--json")
    assert made["caller"] == {"subject": "ann", "tenant": "globex", "region": "us"}
    found = who(folder, made["key"])
    assert found is not None and (found.tenant, found.environment) == ("globex", "test")


def test_a_key_ends_after_ninety_days_unless_told_otherwise(folder: Path) -> None:
    made = {text: run(folder, "key", "create", "--subject", "a", "--json", *text.split()) for text in (
        "", "--expires 12h", "--expires never",
    )}  # fmt: skip
    assert made[""]["expires_at"] > made["--expires 12h"]["expires_at"] > made[""]["created_at"]
    assert made["--expires never"]["expires_at"] == ""


@pytest.mark.parametrize(
    "words",
    [(), ("--subject", " "), ("--subject", "a", "--expires", "90"), ("--subject", "a", "--expires", "0d"),
     ("--subject", "a", "--expires", "99999d"), ("--subject", "a", "--scope", ""), ("--from", "none.json")],
    ids=" ".join,
)  # fmt: skip
def test_a_key_for_nobody_or_for_an_unclear_time_is_not_made(folder: Path, words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["-C", str(folder), "key", "create", *words])
    assert isinstance(done.exception, ConfigError)
    assert run(folder, "key", "list", "--json") == {"keys": []}


def test_a_revoked_key_is_nobodys_at_once_and_for_good(folder: Path) -> None:
    made = run(folder, "key", "create", "--subject", "bot", "--json")
    assert who(folder, made["key"]) is not None
    run(folder, "key", "revoke", made["key_id"])
    assert who(folder, made["key"]) is None
    run(folder, "key", "revoke", made["key_id"], code=1)
    run(folder, "key", "revoke", "0" * 16, code=1)
    assert [row["state"] for row in run(folder, "key", "list", "--json")["keys"]] == ["revoked"]
    kept = run(folder, "key", "create", "--subject", "bot", "--json")["key_id"]
    run(folder, "revoke", "session", "s-1")
    rows = run(folder, "revoke", "list", "--json")["revocations"]
    assert [(row["kind"], row["value"]) for row in rows] == [("key", made["key_id"]), ("session", "s-1")]
    assert rows[0]["at"] == run(folder, "key", "list", "--json")["keys"][0]["revoked_at"]
    shown = run(folder, "revoke", "list").stdout
    assert made["key_id"] in shown and kept not in shown
    done = CliRunner().invoke(app, ["-C", str(folder), "revoke", "restore", "key", made["key_id"]])
    assert done.exit_code == 2, "a key is ended for good"


def test_a_revoked_subject_is_nobody_until_restored(folder: Path) -> None:
    key = run(folder, "key", "create", "--subject", "bot", "--tenant", "acme").stdout.strip()
    run(folder, "revoke", "subject", "bot")
    assert who(folder, key) is not None, "a subject of no tenant is another one"
    run(folder, "revoke", "subject", "bot", "--tenant", "acme", "--by", "tests", "--reason", "left")
    assert who(folder, key) is None
    rows = run(folder, "revoke", "list", "--json")["revocations"]
    assert [(r["kind"], r["value"], r["by"], r["reason"]) for r in rows][-1] == ("subject", "acme/bot", "tests", "left")
    run(folder, "revoke", "restore", "subject", "bot", "--tenant", "acme")
    assert who(folder, key) is not None
    run(folder, "revoke", "restore", "subject", "bot", "--tenant", "acme", code=1)
    run(folder, "revoke", "subject", "me/bot", "--tenant", "ac")
    run(folder, "revoke", "subject", "bot", "--tenant", "ac/me")
    values = [row["value"] for row in run(folder, "revoke", "list", "--json")["revocations"][-2:]]
    assert values == ["ac/me/bot", "ac%2Fme/bot"]
    run(folder, "revoke", "restore", "subject", "bot", "--tenant", "ac/me")


def test_a_forgotten_or_mistyped_tenant_is_told_with_those_where_the_name_is_known(folder: Path) -> None:
    row = '[[identity.tokens]]\ntoken = "env:NONE"\ncaller = { subject = "bot", tenant = "by-token" }\n'
    with (folder / "toolcrib.toml").open("a", encoding="utf-8") as file:
        file.write(row)
    run(folder, "key", "create", "--subject", "bot", "--tenant", "by-key")
    run(folder, "key", "create", "--subject", "other", "--tenant", "of-another")
    with closing(SqliteStore(load_settings(folder / "toolcrib.toml").store / "store.db")) as store:
        now = datetime.now(UTC).isoformat()  # older ones are removed
        seen = {"subject": "helper", "on_behalf_of": "bot", "tenant": "by-trace"}
        store.put_trace(Trace(trace_id="t", kind="call", at=now, channel=Channel.HTTP, records=(), **seen))
    for words in ((), ("--tenant", "by-tokne")):
        told = run(folder, "revoke", "subject", "bot", *words).stderr
        assert [place for place in ("by-key", "by-token", "by-trace", "of-another") if place in told] == [
            "by-key", "by-token", "by-trace",
        ]  # fmt: skip
    told = run(folder, "revoke", "subject", "bot", "--tenant", "by-key").stderr
    assert "WARNING" not in told and "bot of the tenant by-key" in told
    assert "by-key" not in run(folder, "revoke", "subject", "bot").stderr, "those are let in no more"
    assert "WARNING" not in run(folder, "revoke", "subject", "nobody").stderr


def test_what_stays_revoked_in_a_tenant_is_told_when_the_name_is_restored_without(folder: Path) -> None:
    run(folder, "revoke", "subject", "bot")
    run(folder, "revoke", "subject", "bot", "--tenant", "ac/me")
    for code in (0, 1):
        assert "bot of the tenant ac/me" in run(folder, "revoke", "restore", "subject", "bot", code=code).stderr
    assert "revoked:" not in run(folder, "revoke", "restore", "subject", "bot", "--tenant", "ac/me").stderr


def test_keys_are_listed_with_kind_and_scopes(folder: Path) -> None:
    run(folder, "key", "create", "--subject", "bot", "--kind", "agent", "--scope", "b", "--scope", "a")
    run(folder, "key", "create", "--subject", "ann")
    listed = run(folder, "key", "list").stdout
    assert re.search(r"agent +│ bot +│ +│ a b ", listed) and re.search(r"user +│ ann ", listed)


def test_a_session_is_revoked_by_its_name(folder: Path) -> None:
    run(folder, "revoke", "session", "s-1")
    assert [(r["kind"], r["value"]) for r in run(folder, "revoke", "list", "--json")["revocations"]] == [
        ("session", "s-1")
    ]
    assert "s-1" in run(folder, "revoke", "list").stdout
    done = CliRunner().invoke(app, ["-C", str(folder), "revoke", "session", " "])
    assert isinstance(done.exception, ConfigError)
