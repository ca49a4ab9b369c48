"""What a right `toolcrib.toml` gives."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from toolcrib.errors import ConfigError
from toolcrib.settings import GateSettings, RetrievalSettings, Settings, ToolRule, load_settings
from toolcrib.settings.document import ServerTable, ToolTable
from toolcrib.types import ResourceRule, Risk, SecretRef, ServerSpec, ToolMetadata, Transport, Trust

FULL = """\
[crib]
name = "desk"
environment = "production"
region = "eu"
policy = "rules/who.cedar"

[identity.local]
subject = "ann"
kind = "agent"
scopes = ["tickets.read"]

[[identity.tokens]]
token = "file:tokens/bot"
caller = { subject = "bot", tenant = "acme", environment = "staging" }

[[servers]]
id = "clock"
transport = "stdio"
command = "uvx mcp-server-time"
args = ["--local-timezone", "UTC"]
env = { LOG = "warning", API_TOKEN = "env:CLOCK_TOKEN" }
trust = "trusted"
start_timeout_s = 5

[[servers]]
id = "tickets"
url = "https://mcp.example.com/mcp"
headers = { Authorization = "Bearer env:TICKETS_TOKEN", X-Region = "eu" }
enabled = false

[[servers]]
id = "saved"
path = "saved.tools.json"
max_pages = 3

[[tools]]
match = "clock.*"
risk = "read"
keywords = ["time", "hour"]
cost = 2

[[routing.risk_ceilings]]
stages = ["triage"]
max_risk = "write"

[[routing.risk_ceilings]]
max_risk = "read"

[fallback]
tools = ["clock.get_*"]

[gate]
unknown_risk = "needs_approval"
calls_per_minute = 0

[[resources]]
type = "Ticket"
tools = "tickets.*"
argument = "/ticket/id"
lookup_tool = "tickets.owner"
tenant = "/tenant"
"""


def settings_of(folder: Path, text: str) -> Settings:
    (folder / "toolcrib.toml").write_text(text, encoding="utf-8")
    return load_settings(folder)


def test_servers_become_specs_with_references_for_secrets(tmp_path: Path) -> None:
    assert settings_of(tmp_path, FULL).servers == (
        ServerSpec(
            server_id="clock",
            transport=Transport.STDIO,
            command=("uvx", "mcp-server-time", "--local-timezone", "UTC"),
            env={"LOG": "warning", "API_TOKEN": SecretRef("env:CLOCK_TOKEN")},
            trust=Trust.TRUSTED,
            start_timeout_s=5.0,
        ),
        ServerSpec(
            server_id="tickets",
            transport=Transport.HTTP,
            url="https://mcp.example.com/mcp",
            headers={"Authorization": SecretRef("Bearer env:TICKETS_TOKEN"), "X-Region": "eu"},
            enabled=False,
        ),
        ServerSpec(server_id="saved", transport=Transport.FILE, path="saved.tools.json", max_pages=3),
    )


def test_tool_rules_hold_only_what_was_set_with_lines(tmp_path: Path) -> None:
    (rule,) = settings_of(tmp_path, FULL).tools
    assert rule == ToolRule(
        pattern="clock.*", line=36, fields={"risk": Risk.READ, "keywords": ("time", "hour"), "cost": 2.0}
    )
    assert type(rule.fields["risk"]) is Risk


def test_every_section_arrives(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, FULL)
    assert (settings.crib.name, settings.crib.environment, settings.crib.region) == ("desk", "production", "eu")
    assert settings.identity.local == {"subject": "ann", "kind": "agent", "scopes": ("tickets.read",)}
    (token,) = settings.identity.tokens
    assert token.token == SecretRef("file:tokens/bot")
    assert token.caller == {"subject": "bot", "tenant": "acme", "environment": "staging"}
    assert [(c.stages, c.max_risk) for c in settings.routing.rules.risk_ceilings] == [
        (("triage",), Risk.WRITE),
        ((), Risk.READ),
    ]
    assert settings.fallback.tools == ("clock.get_*",)
    assert settings.gate == GateSettings(unknown_risk="needs_approval")
    assert settings.retrieval == RetrievalSettings()
    assert settings.resources == (
        ResourceRule(
            resource_type="Ticket",
            pattern="tickets.*",
            argument="/ticket/id",
            lookup_tool="tickets.owner",
            lookup_argument="id",
            tenant="/tenant",
        ),
    )
    assert settings.warnings == ()


def test_paths_lie_beside_the_file_wherever_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crib = tmp_path / "crib"
    crib.mkdir()
    monkeypatch.chdir(tmp_path)
    settings = settings_of(Path("crib"), FULL)
    monkeypatch.chdir("/")
    assert settings.path == crib / "toolcrib.toml"
    assert settings.policy == crib / "rules/who.cedar"
    assert settings.store == crib / ".toolcrib"
    assert settings.lock == crib / "toolcrib.lock"
    assert settings.resolve("/etc/x") == Path("/etc/x")


def test_a_folder_with_an_empty_file_works(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "")
    assert (settings.servers, settings.policy, settings.warnings) == ((), None, ())


def test_the_file_itself_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("[crib]\nname = 5\n")
    with pytest.raises(ConfigError) as error:
        load_settings(tmp_path / "other.toml")
    assert error.value.where == "other.toml:2"


@pytest.mark.parametrize("text", ["\ufeff[crib]\nname = 'x'\n", "[crib]\r\nname = 'x'\r\n"], ids=["bom", "crlf"])
def test_files_from_other_editors_load(tmp_path: Path, text: str) -> None:
    (tmp_path / "toolcrib.toml").write_bytes(text.encode())
    assert load_settings(tmp_path).crib.name == "x"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ('"npx -y server"', ("npx", "-y", "server")),
        ("'\"C:\\Program Files\\x.exe\" --flag'", ("C:\\Program Files\\x.exe", "--flag")),
        ('["a b", "c"]', ("a b", "c")),
        ("'server # not a comment'", ("server", "#", "not", "a", "comment")),
    ],
)
def test_a_command_is_a_list_or_a_text_split_at_spaces(tmp_path: Path, command: str, words: tuple[str, ...]) -> None:
    (server,) = settings_of(tmp_path, f'[[servers]]\nid = "x"\ncommand = {command}\n').servers
    assert server.command == words


def test_all_that_a_tool_can_be_said_to_be_can_be_said_here() -> None:
    known = {f.name for f in fields(ToolMetadata)} - {"risk_source"}
    assert set(ToolTable.model_fields) == known | {"match"}


def test_all_that_a_server_has_can_be_configured() -> None:
    known = {f.name for f in fields(ServerSpec)} - {"server_id"}
    assert set(ServerTable.model_fields) == known | {"id", "args"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[[servers]]\nid = "x"\nurl = "http://mcp.example.com/mcp"\n', 3),
        ('[[tools]]\nmatch = "a.*"\n', 1),
        ('[[servers]]\nid = "x"\ncommand = "a"\nargs = [\n"--token",\n"env:TOKEN"]\n', 6),
        ('[[servers]]\nid = "x"\ncommand = "a"\n[servers.env]\nREGION = "${REGION}"\n', 5),
    ],
    ids=["plain http", "row without keys", "reference in args", "placeholder"],
)
def test_what_is_rarely_meant_is_a_warning_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    (warning,) = settings_of(tmp_path, text).warnings
    assert warning.startswith(f"toolcrib.toml:{line}: ")


@pytest.mark.parametrize("host", ["localhost:3000", "127.0.0.1", "[::1]:8080", "app.localhost"])
def test_plain_http_on_this_machine_is_no_warning(tmp_path: Path, host: str) -> None:
    assert settings_of(tmp_path, f'[[servers]]\nid = "x"\nurl = "http://{host}/mcp"\n').warnings == ()


def test_bounds_themselves_are_allowed(tmp_path: Path) -> None:
    text = """
    [selection]
    limit = 50
    [gate]
    approval_ttl_s = 2592000
    [trace]
    keep_days = 36500
    [[servers]]
    id = "a"
    path = "a.json"
    start_timeout_s = 86400
    call_timeout_s = 86400.0
    """
    got = settings_of(tmp_path, text)
    assert (got.selection.limit, got.gate.approval_ttl_s, got.trace.keep_days) == (50, 2_592_000.0, 36_500)
    assert (got.servers[0].start_timeout_s, got.servers[0].call_timeout_s) == (86_400.0, 86_400.0)


def test_a_model_of_ones_own_is_described_with_what_its_kind_needs(tmp_path: Path) -> None:
    for text, said in (
        ('[retrieval]\nembedder = "model"\n', "needs [retrieval.model]"),
        ('[retrieval.model]\nkind = "onnx"\n', "needs `path`"),
        ('[retrieval.model]\nkind = "openai"\npath = "x"\n', "needs `name`"),
    ):
        (tmp_path / "toolcrib.toml").write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match=re.escape(said)):
            load_settings(tmp_path)


def test_a_hosted_model_keeps_its_key_as_a_reference(tmp_path: Path) -> None:
    text = '[retrieval]\nembedder = "model"\n[retrieval.model]\nkind = "openai"\nname = "m"\napi_key = "env:KEY"\n'
    (tmp_path / "toolcrib.toml").write_text(text, encoding="utf-8")
    model = load_settings(tmp_path).retrieval.model
    assert model is not None
    assert model.api_key == SecretRef("env:KEY")
