"""The tables about who may come, whose credentials are used, and what stands before a call."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcrib.errors import ConfigError, NoCredentialError
from toolcrib.settings import JwtSettings, Settings, VaultEntry, is_callers, load_settings, reveal
from toolcrib.types import CallLimit, ResidencyRule, ResourceRule, SecretRef

FULL = """
[policy]
on_broken = "deny"

[identity]
required_scopes = ["mcp"]
resource = "https://crib.example.com/mcp"

[[identity.jwt]]
issuer = "https://id.example.com"
audience = ["https://crib.example.com/mcp"]
keys_url = "https://id.example.com/jwks"
[identity.jwt.claims]
tenant = "org.id"
kind = { value = "agent" }

[[identity.agents]]
caller = { subject = "planner", tenant = "acme", scopes = ["read"] }

[[identity.proxies]]
name = "edge"
addresses = ["10.0.0.0/24", "::1"]
header = "X-Client-Cert"
secret = "env:EDGE"
[[identity.proxies.clients]]
certificate = "CN=a"
caller = { subject = "a" }

[[vault]]
name = "desk"
subject = "ann"
tenant = "acme"
secret = "env:ANN"

[[servers]]
id = "desk"
url = "https://desk.example.com/mcp"
headers = { Authorization = "Bearer caller:desk" }

[gate]
require_offer = true
limits = [{ by = "tenant", concurrent = 3 }]
circuit = { failures = 3, reset_s = 5.0 }

[approvals]
webhook = "https://chat.example.com/hook"
webhook_secret = "env:HOOK"

[routing]
near_score = 0.1
equivalent = [{ tools = ["a.b", "c.d"] }]
health = { min_calls = 3 }
[[routing.residency]]
tenants = ["acme"]
within = ["eu"]

[[resources]]
type = "Order"
tools = "desk.*"
argument = "$.order.id"
url = "https://orders.example.com/{id}"
headers = { Authorization = "Bearer env:ORDERS" }
tenant = "/tenant"
owner = "/owner"

[[resources]]
type = "Case"
tools = "desk.*"
argument = "/case"
check = "policy"
"""


def settings_of(folder: Path, text: str) -> Settings:
    (folder / "toolcrib.toml").write_text(text, encoding="utf-8")
    return load_settings(folder)


def test_every_table_arrives(tmp_path: Path) -> None:
    found = settings_of(tmp_path, FULL)
    assert found.policy_options.on_broken == "deny"
    assert found.profiles == tmp_path / "profiles"
    assert (found.identity.required_scopes, found.identity.resource) == (("mcp",), "https://crib.example.com/mcp")
    assert found.identity.jwt == (
        JwtSettings(
            issuer="https://id.example.com",
            audience=("https://crib.example.com/mcp",),
            keys_url="https://id.example.com/jwks",
            claims={"tenant": "org.id", "kind": {"value": "agent"}},
        ),
    )
    assert found.identity.agents == ({"subject": "planner", "tenant": "acme", "scopes": ("read",)},)
    (proxy,) = found.identity.proxies
    assert (proxy.addresses, proxy.header, proxy.secret) == (
        ("10.0.0.0/24", "::1"),
        "x-client-cert",
        SecretRef("env:EDGE"),
    )
    assert [(one.certificate, one.caller) for one in proxy.clients] == [("CN=a", {"subject": "a"})]
    assert found.vault == (VaultEntry(name="desk", subject="ann", tenant="acme", secret=SecretRef("env:ANN")),)
    assert found.gate.limits == (CallLimit(by="tenant", concurrent=3),)
    assert (found.gate.require_offer, found.gate.circuit_failures, found.gate.circuit_reset_s) == (True, 3, 5.0)
    assert found.approvals.webhook_secret == SecretRef("env:HOOK")
    assert (found.routing.health_min_calls, found.routing.rules.near_score) == (3, 0.1)
    assert found.routing.rules.equivalent == (("a.b", "c.d"),)
    assert found.routing.rules.residency == (ResidencyRule(tenants=("acme",), within=("eu",)),)
    assert found.resources == (
        ResourceRule(
            resource_type="Order",
            pattern="desk.*",
            argument="/order/id",
            url="https://orders.example.com/{id}",
            headers={"Authorization": SecretRef("Bearer env:ORDERS")},
            tenant="/tenant",
            owner="/owner",
        ),
        ResourceRule(resource_type="Case", pattern="desk.*", argument="/case", check="policy"),
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('keys_url = "https://id.example.com/jwks"\n', "", "neither of"),
        ('keys_url = "https://id.', 'keys_file = "k"\nkeys_url = "https://id.', "both of"),
        ("https://id.example.com/jwks", "http://id.example.com/jwks", "plain http"),
        ("[identity.jwt.claims]", 'algorithms = ["HS256"]\n[identity.jwt.claims]', "algorithms"),
        ("[identity.jwt.claims]", 'algorithms = ["none"]\n[identity.jwt.claims]', "algorithms"),
        ('tenant = "org.id"', 'tenant = { from = "x" }', "constant"),
        ('addresses = ["10.0.0.0/24", "::1"]', "addresses = []", "addresses"),
        ('"10.0.0.0/24"', '"edge.example.com"', "IP address"),
        ('secret = "env:EDGE"', 'secret = "hunter2hunter2"', "must be a reference"),
        ('secret = "env:EDGE"', 'secret = "caller:desk"', "not a caller's"),
        ('subject = "ann"\n', "", "whose it is"),
        (
            'tools = ["a.b", "c.d"] }',
            'tools = ["a.b", "c.d"] }, { tools = ["c.d", "e.f"] }',
            "equivalent to others twice",
        ),
        ("concurrent = 3", 'match = "x"', "limits nothing"),
        ('webhook_secret = "env:HOOK"\n', "", "webhook_secret"),
        ("https://orders.example.com/{id}", "https://orders.example.com/all", "one place for the identifier"),
        ("https://orders.example.com/{id}", "https://orders.example.com/{id}/{id}", "one place for the identifier"),
        ("https://orders.example.com/{id}", "https://{id}.example.com/x", "in its host"),
        ("https://orders.example.com/{id}", "https://orders.example.com/x#{id}", "after a #"),
        ("https://orders.example.com/{id}", "http://orders.localhost/{id}", "plain http"),
        ("https://orders.example.com/{id}", "https://u:hunter2@orders.example.com/{id}", "a user or a password"),
        ("https://chat.example.com/hook", "http://chat.localhost/hook", "plain http"),
        ("https://chat.example.com/hook", "https://u@chat.example.com/hook", "a user or a password"),
        ('"env:HOOK"', '"caller:desk"', "not a caller's"),
        ('"Bearer env:ORDERS"', '"Bearer caller:desk"', "asked with the crib's"),
        ('owner = "/owner"', 'lookup_tool = "desk.owner"', "both `lookup_tool` and `url`"),
        ('tenant = "/tenant"\nowner', "owner", "where the tenant stands"),
        ("$.order.id", "$.order[0]", "not a JSON pointer"),
        ('"Bearer env:ORDERS"', '"Bearer sk-1234567890abcdef1234567890"', "secret in plain text"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in FULL
    with pytest.raises(ConfigError, match="(?s)" + said.replace("(", r"\(")) as told:
        settings_of(tmp_path, FULL.replace(old, new, 1))
    assert told.value.where.startswith("toolcrib.toml:") and told.value.hint
    assert "hunter2" not in str(told.value) and "sk-1234" not in str(told.value)


def test_a_caller_reference_where_the_crib_asks_is_told_with_its_line(tmp_path: Path) -> None:
    token = '[[identity.tokens]]\ntoken = "caller:desk"\ncaller = { subject = "a" }\n'
    owner = (
        '[[resources]]\ntype = "Order"\ntools = "a.*"\nargument = "/id"\nurl = "https://o.example.com/{id}"\n'
        'tenant = "/t"\n[resources.headers]\nX-Region = "eu"\nAuthorization = "caller:desk"\n'
    )
    for text, line in ((token, 2), (owner, 9)):
        with pytest.raises(ConfigError) as told:
            settings_of(tmp_path, text)
        assert told.value.where == f"toolcrib.toml:{line}"
        assert "env:NAME" in told.value.hint


def test_how_long_an_idempotency_key_counts_is_a_day_unless_set(tmp_path: Path) -> None:
    assert settings_of(tmp_path, "").gate.idempotency_window_s == 86_400
    assert settings_of(tmp_path, "[gate]\nidempotency_window_s = 2592000\n").gate.idempotency_window_s == 2_592_000


def test_a_callers_credential_comes_from_the_vault_and_is_never_another_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANN", "anns-own")
    wanted = SecretRef("Bearer caller:desk")
    vault = {"desk": SecretRef("env:ANN"), "loop": SecretRef("caller:desk")}
    assert is_callers(wanted) and not is_callers(SecretRef("env:ANN"))
    assert reveal(wanted, root=tmp_path, vault=vault.get) == "Bearer anns-own"
    for lookup in (None, {}.get):
        with pytest.raises(NoCredentialError):
            reveal(wanted, root=tmp_path, vault=lookup)
    with pytest.raises(ConfigError, match="refers to the vault"):
        reveal(SecretRef("caller:loop"), root=tmp_path, vault=vault.get)
