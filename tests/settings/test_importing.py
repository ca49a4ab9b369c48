"""Servers from the files of Claude Desktop, Claude Code, Cursor and VS Code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.errors import ConfigError
from toolcrib.settings import ImportedServers, import_mcp_servers, starter_toml
from toolcrib.settings.loading import settings_from_text
from toolcrib.types import SecretRef, ServerSpec, Transport

GITHUB = "ghp_" + "a1B2" * 9
HIDDEN = "hunter2hunter2"

DESKTOP = {
    "globalShortcut": "Ctrl+Space",
    "mcpServers": {
        "filesystem": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/ann/My Documents"],
        },
        "github": {
            "command": "docker",
            "args": ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"],
            "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": GITHUB, "GITHUB_TOOLSETS": "repos,issues"},
        },
        "postgres db": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-postgres", f"postgresql://app:{HIDDEN}@localhost/shop"],
        },
        "windows": {"command": "C:\\Program Files\\nodejs\\node.exe", "args": ["C:\\mcp\\server.js"], "disabled": True},
    },
}

CODE = {
    "mcpServers": {
        "sentry": {
            "type": "http",
            "url": "https://mcp.sentry.dev/mcp",
            "headers": {"Authorization": "Bearer ${SENTRY}"},
        },
        "internal": {
            "type": "http",
            "url": "${API_BASE:-https://tools.example.com}/mcp",
            "headers": {"X-Api-Key": f"{HIDDEN}", "X-Team": "desk", "Authorization": f"Bearer {HIDDEN}"},
            "timeout": 60000,
        },
        "asana": {"type": "sse", "url": "https://mcp.asana.com/sse"},
        "db": {
            "type": "stdio",
            "command": "/opt/db/bin/server",
            "args": ["--config", "${CONFIG:-/etc/db.json}"],
            "env": {
                "DB_URL": "${DB_URL}",
                "CACHE": "${CACHE_DIR:-/tmp}/x",
                "DB_PASSWORD": f"${{DB_PASSWORD:-{HIDDEN}}}",
            },
        },
        "plugin": {"command": "${CLAUDE_PLUGIN_ROOT}/server", "args": []},
    }
}

CURSOR = {
    "mcpServers": {
        "linear": {"url": "https://mcp.linear.app/mcp", "headers": {"Authorization": "Bearer ${env:LINEAR_TOKEN}"}},
        "local": {
            "type": "stdio",
            "command": "uvx",
            "args": ["my-server", "--root", "${workspaceFolder}"],
            "envFile": "${workspaceFolder}/.env",
            "env": {"OPENAI_API_KEY": "${env:OPENAI_API_KEY}"},
            "autoApprove": ["read_file"],
        },
    }
}

VSCODE = """\
{
  // servers of this workspace
  "inputs": [
    { "type": "promptString", "id": "perplexity-key", "description": "API Key // not a comment", "password": true, },
  ],
  "servers": {
    /* a block
       comment */
    "Perplexity": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "server-perplexity-ask",],
      "env": { "PERPLEXITY_API_KEY": "${input:perplexity-key}", "URL": "https://a.example/x" },
      "dev": { "watch": "src/**" },
    },
    "GitHub Copilot": { "type": "http", "url": "https://api.githubcopilot.com/mcp/" },
  },
}
"""


def taken_over(document: Any, *, name: str = "mcp.json") -> tuple[ImportedServers, dict[str, ServerSpec]]:
    """What the import gives, and the servers that its text loads to, alone and inside a starter."""
    text = document if isinstance(document, str) else json.dumps(document, indent=2)
    imported = import_mcp_servers(text, source_name=name)
    path = Path("/crib/toolcrib.toml")
    servers = settings_from_text(imported.servers_toml, path=path).servers
    assert settings_from_text(starter_toml("x", servers_toml=imported.servers_toml), path=path).servers == servers
    assert tuple(server.server_id for server in servers) == imported.taken
    return imported, {server.server_id: server for server in servers}


def notes_of(imported: ImportedServers, where: str) -> str:
    return "\n".join(note.what for note in imported.notes if note.where == where)


def test_claude_desktop() -> None:
    imported, servers = taken_over(DESKTOP)
    assert imported.taken == ("filesystem", "github", "postgres-db", "windows")
    assert servers["filesystem"] == ServerSpec(
        server_id="filesystem",
        transport=Transport.STDIO,
        command=("npx", "-y", "@modelcontextprotocol/server-filesystem", "/home/ann/My Documents"),
    )
    assert servers["github"].env == {
        "GITHUB_PERSONAL_ACCESS_TOKEN": SecretRef("env:GITHUB_PERSONAL_ACCESS_TOKEN"),
        "GITHUB_TOOLSETS": "repos,issues",
    }
    assert "set GITHUB_PERSONAL_ACCESS_TOKEN" in notes_of(imported, "github")
    assert servers["windows"].command == ("C:\\Program Files\\nodejs\\node.exe", "C:\\mcp\\server.js")
    assert not servers["windows"].enabled
    assert "enabled = false" in notes_of(imported, "windows")
    assert notes_of(imported, "filesystem") == ""


def test_a_renamed_server_and_a_secret_argument_are_told() -> None:
    imported, servers = taken_over(DESKTOP)
    told = notes_of(imported, "postgres db")
    assert "its id is now postgres-db" in told
    assert "argument 3 looked like a secret" in told
    assert not servers["postgres-db"].enabled


def test_claude_code_project_file() -> None:
    imported, servers = taken_over(CODE, name=".mcp.json")
    assert imported.taken == ("sentry", "internal", "db", "plugin")
    assert servers["sentry"].headers == {"Authorization": SecretRef("Bearer env:SENTRY")}
    assert "set it before toolcrib starts" in notes_of(imported, "sentry")
    assert servers["internal"].url == "https://tools.example.com/mcp"
    assert servers["internal"].headers == {
        "X-Api-Key": SecretRef("env:INTERNAL_X_API_KEY"),
        "X-Team": "desk",
        "Authorization": SecretRef("Bearer env:INTERNAL_AUTHORIZATION"),
    }
    assert "`timeout`" in notes_of(imported, "internal")
    assert "SSE" in notes_of(imported, "asana")
    assert servers["db"].command == ("/opt/db/bin/server", "--config", "/etc/db.json")
    assert servers["db"].env == {
        "DB_URL": SecretRef("env:DB_URL"),
        "CACHE": "/tmp/x",
        "DB_PASSWORD": SecretRef("env:DB_PASSWORD"),
    }
    assert not servers["plugin"].enabled
    assert "${CLAUDE_PLUGIN_ROOT}" in notes_of(imported, "plugin")


def test_cursor() -> None:
    imported, servers = taken_over(CURSOR)
    assert servers["linear"].headers == {"Authorization": SecretRef("Bearer env:LINEAR_TOKEN")}
    assert servers["local"].env == {"OPENAI_API_KEY": SecretRef("env:OPENAI_API_KEY")}
    told = notes_of(imported, "local")
    assert "`envFile`" in told
    assert "`autoApprove` was not taken over: approvals are policy here" in told
    assert "args cannot be taken over" in told
    assert not servers["local"].enabled


def test_vs_code_with_comments_and_inputs() -> None:
    imported, servers = taken_over(VSCODE)
    assert imported.taken == ("Perplexity", "GitHub-Copilot")
    assert servers["Perplexity"].env == {
        "PERPLEXITY_API_KEY": SecretRef("env:PERPLEXITY_KEY"),
        "URL": "https://a.example/x",
    }
    assert "set PERPLEXITY_KEY instead" in notes_of(imported, "Perplexity")
    assert "`dev`" in notes_of(imported, "Perplexity")
    assert servers["GitHub-Copilot"].url == "https://api.githubcopilot.com/mcp/"


def test_vs_code_user_settings() -> None:
    _, servers = taken_over({"editor.fontSize": 12, "mcp": {"servers": {"a": {"command": "b"}}}})
    assert list(servers) == ["a"]


def test_claude_code_user_file_with_projects() -> None:
    shared = {"type": "stdio", "command": "uvx", "args": ["mcp-server-time"], "env": {}}
    imported, servers = taken_over(
        {
            "numStartups": 12,
            "mcpServers": {"time": shared},
            "projects": {
                "/home/ann/shop": {"allowedTools": [], "mcpServers": {"time": shared, "db": {"command": "db-shop"}}},
                "/home/ann/desk": {"mcpServers": {"db": {"command": "db-desk"}}, "disabledMcpjsonServers": ["db"]},
                "/home/ann/none": {"mcpServers": {}},
            },
        },
        name="claude.json",
    )
    assert {server_id: spec.command[0] for server_id, spec in servers.items()} == {
        "time": "uvx",
        "db": "db-shop",
        "db-2": "db-desk",
    }
    assert "its id is now db-2" in notes_of(imported, "db (project /home/ann/desk)")
    assert "disabledMcpjsonServers" in notes_of(imported, "claude.json")


def test_two_secrets_under_one_key_get_two_variables_and_one_secret_one() -> None:
    _, servers = taken_over(
        {
            "mcpServers": {
                "a": {"command": "a", "env": {"API_KEY": HIDDEN}},
                "b": {"command": "b", "env": {"API_KEY": HIDDEN + "2"}},
                "c": {"command": "c", "env": {"API_KEY": HIDDEN}},
                "d": {"command": "d", "env": {"TOKEN": HIDDEN}},
                "e": {"command": "e", "env": {"TOKEN": "${TOKEN}"}},
            }
        }
    )
    assert [spec.env for spec in servers.values()] == [
        {"API_KEY": SecretRef("env:API_KEY")},
        {"API_KEY": SecretRef("env:B_API_KEY")},
        {"API_KEY": SecretRef("env:API_KEY")},
        {"TOKEN": SecretRef("env:D_TOKEN")},  # TOKEN itself is what server e reads
        {"TOKEN": SecretRef("env:TOKEN")},
    ]


SECRETS = {
    "named": {"command": "a", "env": {"API_KEY": HIDDEN}},
    "two words": {"command": "a", "env": {"PASSWORD": f"correct {HIDDEN}"}},
    "dollar": {"command": "a", "env": {"PASSWORD": f"${HIDDEN}"}},
    "reference-like": {"command": "a", "env": {"PASSWORD": f"env:{HIDDEN}"}},
    "default": {"command": "a", "env": {"API_KEY": f"${{API_KEY:-{HIDDEN}}}"}},
    "default behind scheme": {"url": "https://a.example/", "headers": {"Authorization": f"Bearer ${{T:-{HIDDEN}}}"}},
    "composed": {"command": "a", "env": {"API_KEY": f"{HIDDEN}-${{X}}"}},
    "shape alone": {"command": "a", "env": {"THING": GITHUB}},
    "random alone": {"command": "a", "env": {"THING": f"{HIDDEN}abcdef0123"}},
    "header": {"url": "https://a.example/", "headers": {"Authorization": f"Bearer {HIDDEN}"}},
    "cookie": {"url": "https://a.example/", "headers": {"Cookie": f"sid={HIDDEN}; b=c"}},
    "url": {"url": f"https://a.example/?api_key={HIDDEN}"},
    "url password": {"url": f"https://u:{HIDDEN}@a.example/"},
    "url default": {"url": f"https://a.example/?api_key=${{K:-{HIDDEN}}}"},
    "argument": {"command": "a", "args": ["--api-key", HIDDEN]},
    "argument default": {"command": "a", "args": ["--api-key", f"${{K:-{HIDDEN}}}"]},
    "argument json": {"command": "a", "args": ["--config", json.dumps({"apiKey": HIDDEN})]},
    "argument header": {"command": "npx", "args": ["mcp-remote", "u", "--header", f"Authorization: Bearer {HIDDEN}"]},
    "odd place": {"command": "a", "oauth": {"clientSecret": HIDDEN}},
    "odd type": {"command": "a", "env": [HIDDEN]},
    "bad header": {"url": "https://a.example/", "headers": {"X Key": HIDDEN}},
}


@pytest.mark.parametrize("entry", SECRETS.values(), ids=list(SECRETS))
def test_no_secret_of_the_file_is_written_or_told(entry: dict[str, Any]) -> None:
    imported, servers = taken_over({"mcpServers": {"x": entry}})
    told = imported.servers_toml + repr(imported) + repr(servers)
    assert HIDDEN not in told
    assert GITHUB not in told
    assert notes_of(imported, "x")


LEFT_OUT = {
    "no object": "npx server",
    "nothing": {},
    "no text": {"command": {"a": 1}},
    "bad args": {"command": "a", "args": "-y"},
    "half a surrogate": {"command": "\ud800"},
    "unknown type": {"type": "websocket", "url": "wss://a.example/"},
    "no url": {"type": "http"},
    "bad url": {"url": "a.example/mcp"},
    "variable url": {"url": "${URL}/mcp"},
}


@pytest.mark.parametrize("entry", LEFT_OUT.values(), ids=list(LEFT_OUT))
def test_what_cannot_be_taken_over_is_left_out_and_told_and_costs_no_other(entry: Any) -> None:
    imported, _ = taken_over({"mcpServers": {"x": entry, "y": {"command": "b"}}})
    assert imported.taken == ("y",)
    assert "left out: " in notes_of(imported, "x")


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"command": "a", "alwaysAllow": ["t"]}, "`alwaysAllow`"),
        ({"command": "a", "cwd": "src"}, "cwd is relative"),
        ({"command": "a", "cwd": "${workspaceFolder}"}, "cwd is made of variables"),
        ({"command": "a", "colour": "red"}, "`colour` was not taken over: Toolcrib has no such key"),
        ({"command": "a", "url": "https://a.example/"}, "`url`"),
        ({"command": "a", "env": {"PORT": 80, "X": None}}, "`X` in env is not a text"),
        ({"url": "https://a.example/sse"}, "try /mcp"),
        ({"url": "https://a.example/", "env": {"A": "b"}}, "`env`"),
        ({"command": "a", "args": ["${X:-}", "${env:Y}"]}, "${Y} in its args"),
        ({"command": "a", "env": {"DATABASE_URL": "file:./dev.db"}}, "would be read as a reference here"),
        ({"command": "a", "env": {"ROOT": "${workspaceFolder}/src"}}, "set ROOT to the whole text"),
        ({"command": "a", "disabled": "true"}, "enabled = false"),
    ],
)
def test_whatever_does_not_come_along_is_told(entry: dict[str, Any], told: str) -> None:
    imported, servers = taken_over({"mcpServers": {"x": entry}})
    assert told in notes_of(imported, "x")
    assert list(servers) == ["x"]


def test_a_program_that_reads_its_own_variables_stays_enabled() -> None:
    entry = {
        "command": "npx",
        "args": ["mcp-remote", "https://a.example/mcp", "--header", "Authorization:${AUTH_HEADER}"],
        "env": {"AUTH_HEADER": f"Bearer {HIDDEN}"},
    }
    _, servers = taken_over({"mcpServers": {"x": entry}})
    assert servers["x"].enabled
    assert servers["x"].command[-1] == "Authorization:${AUTH_HEADER}"
    assert servers["x"].env == {"AUTH_HEADER": SecretRef("Bearer env:X_AUTH_HEADER")}  # AUTH_HEADER may be the client's


def test_names_that_collide_after_mending_stay_apart() -> None:
    names = ["a b", "a.b", "a-b", "名前", "", "x" * 80, "x" * 81]
    imported, _ = taken_over({"mcpServers": {name: {"command": str(number)} for number, name in enumerate(names)}})
    assert imported.taken == ("a-b", "a-b-2", "a-b-3", "server", "server-2", "x" * 60, "x" * 58 + "-2")


def test_a_name_that_stands_twice_is_told() -> None:
    imported, servers = taken_over('{"mcpServers": {"a": {"command": "b"}, "a": {"command": "c"}}}')
    assert servers["a"].command == ("c",)
    assert '"a" stands twice' in notes_of(imported, "mcp.json")


def test_an_empty_list_is_told() -> None:
    imported, _ = taken_over({"mcpServers": {}})
    assert (imported.servers_toml, imported.taken) == ("", ())
    assert "empty" in notes_of(imported, "mcp.json")


@pytest.mark.parametrize("text", ["[]", "{}", "3", '{"tools": []}'])
def test_a_file_without_servers_says_what_was_looked_for(text: str) -> None:
    with pytest.raises(ConfigError) as error:
        import_mcp_servers(text, source_name="some.json")
    assert error.value.where == "some.json"
    assert "mcpServers" in error.value.hint


def test_broken_json_has_its_line_and_shows_nothing_of_it() -> None:
    with pytest.raises(ConfigError) as error:
        import_mcp_servers(f'{{\n// c\n"mcpServers": {{\n"a": {HIDDEN} }} }}', source_name="some.json")
    assert error.value.where == "some.json:4"
    assert HIDDEN not in str(error.value) + repr(error.value.__context__)


texts = st.text(max_size=12)
entries = st.fixed_dictionaries(
    {"command": texts},
    optional={"args": st.lists(texts, max_size=3), "env": st.dictionaries(texts, texts, max_size=3), "cwd": texts},
) | st.fixed_dictionaries(
    {"url": texts.map("https://a.example/{}".format)}, optional={"headers": st.dictionaries(texts, texts)}
)


@given(st.dictionaries(texts, entries, max_size=4))
def test_whatever_is_taken_loads_to_what_stood_there(servers: dict[str, dict[str, Any]]) -> None:
    imported, specs = taken_over({"mcpServers": servers})
    told = {note.where for note in imported.notes}
    for name, entry in servers.items():
        shown = name if name.isprintable() and name else json.dumps(name)
        if shown not in told:
            assert specs[name].command == ((entry["command"], *entry.get("args", [])) if "command" in entry else ())
            assert specs[name].env == entry.get("env", {})
            assert specs[name].headers == entry.get("headers", {})
