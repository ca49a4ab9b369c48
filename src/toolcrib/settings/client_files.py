"""Other clients' configuration files: JSON with comments, and where in it the servers are.

Claude Desktop, Cursor     {"mcpServers": {name: server}}
Claude Code .mcp.json      the same, with "type" in a server
Claude Code ~/.claude.json the same, and {"projects": {folder: {"mcpServers": …}}}
VS Code mcp.json           {"servers": {name: server}, "inputs": […]}
VS Code settings.json      the same under "mcp"
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.errors import ConfigError

_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STRING_OR_TRAILING_COMMA = re.compile(r'"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])')
_HINT = 'a file with "mcpServers" (Claude Desktop, Claude Code, Cursor) or "servers" (VS Code) can be taken over'
_PROJECT_SWITCHES = ("enabledMcpjsonServers", "disabledMcpjsonServers", "disabledMcpServers")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    """One server as its client's file describes it. `entry` is whatever stood there; `origin` the project, or ""."""

    name: str
    entry: Any
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFile:
    """What was found. `remarks` are sentences about the file as a whole."""

    servers: tuple[FoundServer, ...]
    remarks: tuple[str, ...] = ()


def read_client_file(text: str, *, source_name: str) -> ClientFile:
    """The servers in a client's file.

    Raises:
        ConfigError: it is not JSON, or holds nothing that looks like a list of servers.
    """
    document, repeated = _parsed(text.removeprefix("\ufeff"), source_name=source_name)
    if not isinstance(document, Mapping):
        raise ConfigError("this is JSON, but not an object", where=source_name, hint=_HINT)
    tables = list(_server_tables(document))
    if not tables:
        raise ConfigError("no MCP servers found here", where=source_name, hint=_HINT)
    remarks = [f"{json.dumps(key)} stands twice in one object: the last one counts" for key in repeated]
    for origin, table in tables:
        if not isinstance(table, Mapping):
            remarks.append(f"the servers{_of(origin)} are not an object and were left out")
    return ClientFile(
        servers=tuple(
            FoundServer(name=name, entry=entry, origin=origin)
            for origin, table in tables
            if isinstance(table, Mapping)
            for name, entry in table.items()
        ),
        remarks=(*remarks, *_switches(document)),
    )


def _server_tables(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for holder in (document, document.get("mcp")):
        if isinstance(holder, Mapping):
            for key in ("mcpServers", "servers"):
                if key in holder:
                    yield "", holder[key]
    projects = document.get("projects")
    for folder, project in projects.items() if isinstance(projects, Mapping) else ():
        if isinstance(project, Mapping) and project.get("mcpServers"):
            yield folder, project["mcpServers"]


def _switches(document: Mapping[str, Any]) -> Iterator[str]:
    """Lists that switch servers on and off by name elsewhere in the file."""
    projects = document.get("projects")
    holders = [("", document), *(projects.items() if isinstance(projects, Mapping) else ())]
    for origin, holder in holders:
        for key in _PROJECT_SWITCHES:
            if isinstance(holder, Mapping) and holder.get(key):
                yield f"{key}{_of(origin)} was not taken over: set enabled = false on the servers meant"


def _of(origin: str) -> str:
    return f" of project {json.dumps(origin)}" if origin else ""


def _parsed(text: str, *, source_name: str) -> tuple[Any, list[str]]:
    repeated: list[str] = []

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        names = [name for name, _ in pairs]
        repeated.extend(name for name in found if names.count(name) > 1)
        return found

    try:
        return json.loads(_without_comments(text), object_pairs_hook=object_of), repeated
    except json.JSONDecodeError as error:
        fault, line = error.msg, error.lineno
    except (RecursionError, ValueError):
        fault, line = "it is nested too deeply or holds an endless number", 0
    # Raised here and not above: the decoder's error carries the whole file, secrets included.
    where = f"{source_name}:{line}" if line else source_name
    raise ConfigError(f"this is not JSON: {fault}", where=where, hint="mend it there, or take over another file")


def _without_comments(text: str) -> str:
    """The same text, line for line, without comments and trailing commas."""
    bare = _STRING_OR_COMMENT.sub(_keep_string, text)
    return _STRING_OR_TRAILING_COMMA.sub(_keep_string, bare)


def _keep_string(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else "\n" * match[0].count("\n")
