"""Callers from configuration and files: all fields, sensible defaults, nothing read generously."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolcrib.errors import ConfigError
from toolcrib.identity.callers import caller_from_file, caller_from_mapping, local_operator
from toolcrib.types import Caller, CallerKind

FULL = {
    "subject": "bot-7",
    "kind": "agent",
    "on_behalf_of": "ann",
    "tenant": "acme",
    "roles": ["support", "lead"],
    "scopes": ["tickets:read"],
    "stage": "triage",
    "environment": "prod",
    "region": "eu",
    "features": ["beta"],
    "clearance": "secret",
}


def _caller(described: Any) -> Caller:
    return caller_from_mapping(described, environment="test", region="us", where="caller.json")


def _refusal(described: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        _caller(described)
    assert caught.value.where == "caller.json"
    assert caught.value.hint
    return caught.value


def test_every_field_of_a_caller_can_be_given() -> None:
    assert _caller(FULL) == Caller(
        subject="bot-7",
        kind=CallerKind.AGENT,
        on_behalf_of="ann",
        tenant="acme",
        roles=frozenset({"support", "lead"}),
        scopes=frozenset({"tickets:read"}),
        stage="triage",
        environment="prod",
        region="eu",
        features=frozenset({"beta"}),
        clearance="secret",
    )


def test_what_is_left_out_is_empty_and_the_place_is_the_cribs() -> None:
    assert _caller({"subject": "ann"}) == Caller(subject="ann", environment="test", region="us")


def test_an_environment_given_as_empty_stays_empty() -> None:
    assert _caller({"subject": "ann", "environment": "", "region": ""}) == Caller(subject="ann")


@pytest.mark.parametrize(
    ("described", "says", "hints"),
    [
        pytest.param({"subject": "a", "tenants": "x"}, '"tenants"', '"tenant"', id="misspelled"),
        pytest.param({"subject": "a", "colour": "x"}, '"colour"', "on_behalf_of", id="unknown"),
        pytest.param({"tenant": "x"}, "subject", "subject", id="no-subject"),
        pytest.param({"subject": ""}, "subject", "subject", id="empty-subject"),
        pytest.param({"subject": " \t"}, "subject", "subject", id="blank-subject"),
        pytest.param({"subject": 7}, "a number", "", id="subject-not-text"),
        pytest.param({"subject": "a", "tenant": None}, "null", "leave it out", id="null"),
        pytest.param({"subject": "a", "stage": True}, "true or false", "", id="bool"),
        pytest.param({"subject": "a", "kind": "robot"}, "robot", '"agent"', id="kind"),
        pytest.param({"subject": "a", "roles": "admin"}, "a string", "[", id="text-for-a-list"),
        pytest.param({"subject": "a", "scopes": ["x", 3]}, "a list with a number in it", "[", id="number-in-list"),
        pytest.param({"subject": "a", "roles": [["x"]]}, "a list with a list in it", "[", id="list-in-list"),
        pytest.param({"subject": "a", "features": [""]}, "a list with a blank string in it", "[", id="blank-in-list"),
        pytest.param({"subject": "a", "roles": {"x": 1}}, "an object", "[", id="object-for-a-list"),
        pytest.param(["a"], "a list", "subject", id="not-an-object"),
        pytest.param(None, "null", "subject", id="null-caller"),
    ],
)
def test_a_caller_that_is_unclear_is_refused(described: Any, says: str, hints: str) -> None:
    refusal = _refusal(described)
    assert says in refusal.what
    assert hints in refusal.hint


def test_a_file_describes_a_caller(tmp_path: Path) -> None:
    path = tmp_path / "caller.json"
    path.write_text(json.dumps(FULL), encoding="utf-8")
    assert caller_from_file(path, environment="test", region="us") == _caller(FULL)


def test_a_file_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "caller.json"
    path.write_bytes(b'\xef\xbb\xbf{"subject": "ann"}')
    assert caller_from_file(path, environment="", region="").subject == "ann"


@pytest.mark.parametrize(
    ("content", "says", "line"),
    [
        pytest.param(b'{"subject": "a",\n "tenant": }', "not JSON", ":2", id="broken"),
        pytest.param(b"", "not JSON", ":1", id="empty"),
        pytest.param(b'{"subject": "\xff"}', "UTF-8", "", id="not-utf-8"),
        pytest.param(b'{"subject": "a", "tenant": "x", "tenant": "y"}', '"tenant" is given twice', "", id="key-twice"),
        pytest.param(b'{"subject": "a", "roles": [{"x": 1, "x": 2}]}', '"x" is given twice', "", id="inner-key-twice"),
        pytest.param(b"[" * 200_000, "JSON", "", id="too-deep"),
        pytest.param(b'{"subject": "a", "tenants": "x"}', '"tenants"', "", id="misspelled"),
        pytest.param(b'"ann"', "a string", "", id="no-object"),
    ],
)
def test_a_bad_file_is_refused_by_its_name(tmp_path: Path, content: bytes, says: str, line: str) -> None:
    path = tmp_path / "caller.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        caller_from_file(path, environment="", region="")
    assert says in caught.value.what
    assert caught.value.where == f"{path}{line}"
    assert caught.value.hint


def test_a_missing_file_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        caller_from_file(tmp_path / "none.json", environment="", region="")
    assert caught.value.where == str(tmp_path / "none.json")


def test_the_local_operator_holds_what_configuration_grants_and_no_more() -> None:
    assert local_operator({}, environment="test", region="us") == Caller(
        subject="local-operator", environment="test", region="us"
    )
    granted = local_operator({"subject": "ann", "scopes": ["a"]}, environment="test", region="us")
    assert granted == Caller(subject="ann", scopes=frozenset({"a"}), environment="test", region="us")


def test_a_misspelled_grant_to_the_local_operator_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        local_operator({"scope": ["a"]}, environment="", region="", where="toolcrib.toml: [identity]")
    assert caught.value.where == "toolcrib.toml: [identity]"
