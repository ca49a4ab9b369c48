"""`[[identity.jwt]]` rows beside each other, and `[[vault]]` rows: who may speak for whom is settled when they load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolcrib.errors import ConfigError
from toolcrib.settings import JwtSettings, Settings, VaultEntry
from toolcrib.settings.loading import settings_from_text
from toolcrib.types import CallerKind, SecretRef


def loaded(text: str) -> Settings:
    return settings_from_text(text, path=Path("/x/toolcrib.toml"))


def issuer(name: str, *lines: str, audience: str = "crib") -> str:
    own = (f'issuer = "https://{name}.example"', f'audience = ["{audience}"]', 'keys_file = "keys.json"', *lines)
    return "\n".join(("[[identity.jwt]]", *own, ""))


def refusal(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        loaded(text)
    return caught.value


FROM_TOKEN = 'claims = { tenant = "org" }'


@pytest.mark.parametrize(
    "lines",
    [(), (FROM_TOKEN,), ('tenants = ["acme", "globex"]', FROM_TOKEN), ('claims = { tenant = { value = "acme" } }',)],
    ids=["nothing", "from-token", "listed", "constant"],
)
def test_one_issuer_alone_may_speak_for_any_tenant_or_for_some(lines: tuple[str, ...]) -> None:
    (row,) = loaded(issuer("a", *lines)).identity.jwt
    assert row.tenants == (("acme", "globex") if lines and lines[0].startswith("tenants") else ())


def test_several_rows_of_one_issuer_are_one_issuer() -> None:
    rows = loaded(issuer("a", FROM_TOKEN) + issuer("a", FROM_TOKEN, audience="other")).identity.jwt
    assert len({row.issuer for row in rows}) == 1
    shared = 'tenants = ["acme"]'
    loaded(issuer("a", shared) + issuer("a", shared, audience="other") + issuer("b", 'tenants = ["globex"]'))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('tenants = ["acme"]', 'tenants = ["globex"]'),
        ('tenants = ["acme"]', 'claims = { tenant = { value = "globex" } }'),
        ('claims = { tenant = { value = "" } }', 'claims = { tenant = { value = "globex" } }'),
        ('tenants = ["acme"]', 'tenants = ["Acme"]'),
    ],
    ids=["listed", "mixed", "no-tenant-is-one-too", "exact"],
)
def test_issuers_of_different_tenants_go_together(first: str, second: str) -> None:
    assert len(loaded(issuer("a", first) + issuer("b", second)).identity.jwt) == 2


@pytest.mark.parametrize(
    ("first", "second", "line", "words"),
    [
        ("", 'tenants = ["globex"]', 1, "several issuers"),
        ('tenants = ["globex"]', FROM_TOKEN, 6, "several issuers"),
        ('tenants = ["globex"]', 'claims = { tenant = { value = ["acme"] } }', 6, "several issuers"),
        ('tenants = ["acme", "x"]', 'tenants = ["y", "acme"]', 10, "`acme` has two issuers"),
        ('tenants = ["acme"]', 'claims = { tenant = { value = "acme" } }', 10, "`acme` has two issuers"),
    ],
    ids=["first-silent", "second-silent", "constant-of-a-wrong-kind", "shared", "shared-constant"],
)
def test_two_issuers_that_could_name_the_same_caller_are_refused_with_line_and_hint(
    first: str, second: str, line: int, words: str
) -> None:
    fault = refusal(issuer("a", first) + issuer("b", second))
    assert words in fault.what
    assert fault.where == f"toolcrib.toml:{line}"
    assert fault.hint


@pytest.mark.parametrize("tenants", ["[]", '[""]', '"acme"', "[1]"])
def test_tenants_are_a_list_of_names(tenants: str) -> None:
    fault = refusal(issuer("a", f"tenants = {tenants}"))
    assert fault.where == "toolcrib.toml:5"


def test_a_row_that_could_let_nobody_in_is_a_slip() -> None:
    fault = refusal(issuer("a", 'tenants = ["acme"]', 'claims = { tenant = { value = "globex" } }'))
    assert fault.where == "toolcrib.toml:5"


@pytest.mark.parametrize(
    "rows",
    ['jwt = "x"', "jwt = [7]", 'jwt = [{ issuer = 7 }, { issuer = "b", tenants = [7], claims = { tenant = 7 } }]'],
)
def test_rows_of_a_wrong_shape_are_refused_for_that(rows: str) -> None:
    assert isinstance(refusal(f"[identity]\n{rows}\n"), ConfigError)


def test_settings_without_tenants_are_those_of_before() -> None:
    assert JwtSettings(issuer="a", audience=("b",)).tenants == ()


@pytest.mark.parametrize(
    ("line", "kind"), [("", CallerKind.USER), ('kind = "agent"', CallerKind.AGENT)], ids=["default", "agent"]
)
def test_a_credential_in_the_vault_is_of_one_kind_of_caller(line: str, kind: CallerKind) -> None:
    (row,) = loaded(f'[[vault]]\nname = "hub"\nsubject = "bot"\nsecret = "env:BOT"\n{line}\n').vault
    assert row == VaultEntry(name="hub", subject="bot", secret=SecretRef("env:BOT"), kind=kind)


def test_an_unknown_kind_in_the_vault_is_refused() -> None:
    fault: Any = refusal('[[vault]]\nname = "hub"\nsubject = "bot"\nsecret = "env:BOT"\nkind = "robot"\n')
    assert fault.where == "toolcrib.toml:5"
