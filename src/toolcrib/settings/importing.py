"""Servers from other clients' files into `[[servers]]` blocks, and a note for everything that could not come along.

Invariants
1. What comes out can be loaded: each block is tried before it is taken, and left out with the reason when it fails.
2. No secret of the file is written, neither into the blocks nor into a note.
3. Nothing is dropped in silence: every key of every server is either taken over or named in a note.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolcrib.errors import ConfigError
from toolcrib.settings.client_files import FoundServer, read_client_file
from toolcrib.settings.client_values import VariableNames, as_texts, take_values, variables_in, with_defaults
from toolcrib.settings.loading import settings_from_text
from toolcrib.settings.plaintext import secret_in_url, secrets_in_arguments
from toolcrib.settings.toml_text import server_block


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportNote:
    """What could not be taken over as it was, and what to do. `where`: the server's name in the file, or the file."""

    where: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedServers:
    """`servers_toml`: `[[servers]]` blocks, "" for none. `taken`: their ids, in order."""

    servers_toml: str
    taken: tuple[str, ...]
    notes: tuple[ImportNote, ...]


def import_mcp_servers(text: str, *, source_name: str) -> ImportedServers:
    """The servers of a client's configuration as `[[servers]]` blocks.

    Args:
        text: the file of Claude Desktop, Claude Code, Cursor or VS Code; comments and trailing commas may stand in it.
        source_name: how notes and errors call the file.
    Raises:
        ConfigError: it is not JSON, or holds no servers in any known shape.
    """
    file = read_client_file(text, source_name=source_name)
    notes = [ImportNote(where=source_name, what=what) for what in file.remarks]
    names = VariableNames(_texts_in([server.entry for server in file.servers]))
    blocks: dict[str, str] = {}
    same: dict[str, str] = {}
    for server in file.servers:
        description = json.dumps([server.name, server.entry], sort_keys=True)
        if description in same:
            continue  # the same server in another project: nothing is lost
        taking = _Taking(server, taken=blocks, names=names)
        block = taking.block()
        notes += [ImportNote(where=taking.shown, what=what) for what in taking.remarks]
        if block:
            blocks[taking.server_id] = same[description] = block
    if not file.servers:
        notes.append(ImportNote(where=source_name, what="its list of servers is empty"))
    return ImportedServers(servers_toml="\n".join(blocks.values()), taken=tuple(blocks), notes=tuple(notes))


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts_in(item)


_HTTP_TYPES = ("http", "streamable-http", "streamablehttp", "streamable_http")
_URL_KEYS = ("url", "serverUrl", "httpUrl")
_APPROVALS = ("autoApprove", "alwaysAllow", "trust")
_TOLD: Mapping[str, str] = {
    **dict.fromkeys(_APPROVALS, "was not taken over: approvals are policy here (policy.cedar, and risk in [[tools]])"),
    "envFile": "was not taken over: list its variables in env, each as env:NAME or file:PATH",
    "oauth": 'was not taken over: give a token in headers, Authorization = "Bearer env:NAME"',
    "auth": 'was not taken over: give a token in headers, Authorization = "Bearer env:NAME"',
    "headersHelper": 'was not taken over: give a token in headers, Authorization = "Bearer env:NAME"',
    "timeout": "was not taken over, clients differ in its unit: set start_timeout_s or call_timeout_s",
}
_QUIET = frozenset({"name", "description", "gallery", "version", "icon"})
"""Keys that change nothing about how a server runs."""


class _Taking:
    """One server on its way over: reads each key of the entry once and remembers which were read."""

    def __init__(self, server: FoundServer, *, taken: Mapping[str, str], names: VariableNames) -> None:
        self.remarks: list[str] = []
        self.shown = _shown(server.name) + (f" (project {_shown(server.origin)})" if server.origin else "")
        self.server_id = _server_id(server.name, taken)
        self._entry = server.entry
        self._names = names
        self._read: set[str] = set()
        self._enabled = True
        self._name = server.name

    def block(self) -> str:
        """The `[[servers]]` block, or "" when this server cannot be taken over; the remarks say why."""
        if not isinstance(self._entry, Mapping):
            return self._left_out("its description is not an object")
        if not _is_text(self._entry):
            return self._left_out("it holds characters that no file can hold (half a surrogate pair)")
        fields = self._fields()
        if fields is None:
            return ""
        if self.server_id != self._name:
            self.remarks.insert(
                0, f"its id is now {self.server_id}: ids are made of A-Z, a-z, 0-9, _ and -, each used once"
            )
        self._tell_unread()
        block = server_block(fields if self._enabled else fields | {"enabled": False})
        fault = _fault_of(block)
        return self._left_out(fault) if fault else block

    def _fields(self) -> dict[str, Any] | None:
        switches = (self._get("disabled"), self._get("enabled"))
        self._enabled = switches[0] in (None, False, "false") and switches[1] in (None, True, "true")
        if not self._enabled:
            self.remarks.append("it is disabled there, so it has enabled = false here")
        kind = str(self._get("type", "transport") or "").lower()
        has_command, has_url = "command" in self._entry, any(key in self._entry for key in _URL_KEYS)
        if kind == "sse":
            self._left_out(
                "it speaks the older HTTP+SSE transport, which Toolcrib does not: many such servers also answer "
                "streamable HTTP, often at /mcp in place of /sse"
            )
            return None
        if kind in _HTTP_TYPES or (not kind and has_url and not has_command):
            return self._http()
        if kind in ("", "stdio", "local"):
            return self._stdio()
        self._left_out(f"its type {_shown(kind)} is not one Toolcrib knows (stdio, http)")
        return None

    def _stdio(self) -> dict[str, Any] | None:
        command = self._get("command")
        words = [command] if isinstance(command, str) else command
        args = self._get("args")
        if not isinstance(words, list) or not words or not isinstance(args, list | None):
            self._left_out("it has no command, or its args are not a list")
            return None
        given = [*words, *(args or [])]
        if any(isinstance(word, Mapping | list) or word is None for word in given):
            self._left_out("its command holds something that is not a text")
            return None
        arguments = [str(word).lower() if isinstance(word, bool) else str(word) for word in given]
        env = self._values("env")
        return {
            "id": self.server_id,
            "transport": "stdio",
            "command": self._arguments(arguments, env),
            "env": env,
            "cwd": self._cwd(),
        }

    def _http(self) -> dict[str, Any] | None:
        url = self._get(*_URL_KEYS)
        filled = with_defaults(url) if isinstance(url, str) else None
        if filled is None:
            self._left_out("its url is missing, or holds variables without defaults: write it out, secrets in headers")
            return None
        if filled != url:
            self.remarks.append("the defaults of the variables in its url were taken over")
        place = secret_in_url(filled)
        if place:
            self._left_out(f'its url holds a secret ({place}): send it as a header, Authorization = "Bearer env:NAME"')
            return None
        if filled.rstrip("/").endswith("/sse"):
            self.remarks.append(
                "its url ends in /sse: if refresh fails, try /mcp; the older SSE transport is not spoken"
            )
        return {"id": self.server_id, "transport": "http", "url": filled, "headers": self._values("headers")}

    def _values(self, table: str) -> dict[str, str]:
        texts = as_texts(self._get(table), table=table, remark=self.remarks.append)
        return take_values(texts, table=table, server_id=self.server_id, names=self._names, remark=self.remarks.append)

    def _arguments(self, arguments: list[str], env: Mapping[str, str]) -> list[str]:
        """The command's words, defaults filled in and secrets out; the server is off when it cannot run like this."""
        words = [word if (filled := with_defaults(word)) is None else filled for word in arguments]
        if words != arguments:
            self.remarks.append("the defaults of the variables in its args were taken over")
        for position, name in list(secrets_in_arguments(words)):
            words[position] = "SECRET-LEFT-OUT"
            self._switch_off(
                f"argument {position}{f' ({name})' if name else ''} looked like a secret and was not written: hand it "
                """over in env, or start it with command = ["sh", "-c", 'exec program "$NAME"']"""
            )
        unknown = sorted({f"${{{v.name or '…'}}}" for word in words for v in variables_in(word) if v.name not in env})
        if unknown:
            self._switch_off(f"{', '.join(unknown)} in its args cannot be taken over: write the value out")
        elif any(variables_in(word) for word in words):
            self.remarks.append("${…} in its args stays as it is; the program must read it from its environment itself")
        return words

    def _cwd(self) -> str:
        cwd = self._get("cwd")
        if not cwd:
            return ""
        if not isinstance(cwd, str) or variables_in(cwd):
            self._switch_off("its cwd is made of variables and was not taken over: write the folder out")
            return ""
        if not Path(cwd).is_absolute():
            self.remarks.append("its cwd is relative: it now starts from the folder of toolcrib.toml")
        return cwd

    def _get(self, *keys: str) -> Any:
        """The first of these keys that is there; all of them count as read."""
        self._read.update(keys)
        return next((self._entry[key] for key in keys if key in self._entry), None)

    def _tell_unread(self) -> None:
        for key, value in self._entry.items():
            if key in self._read or key in _QUIET or value in (None, [], {}, False):
                continue
            self.remarks.append(f"`{_shown(key)}` {_TOLD.get(key, 'was not taken over: Toolcrib has no such key')}")

    def _switch_off(self, why: str) -> None:
        self._enabled = False
        self.remarks.append(f"{why}; until then it has enabled = false")

    def _left_out(self, why: str) -> str:
        self.remarks.append(f"left out: {why}")
        return ""


def _server_id(name: str, taken: Mapping[str, str]) -> str:
    """The name itself where it can be an id; otherwise what remains of it, with a number where that is taken."""
    base = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:60] if not _fits(name) else name
    base = base or "server"
    numbered = (f"{base[:58]}-{number}" for number in range(2, 100_000))
    return base if base not in taken else next(candidate for candidate in numbered if candidate not in taken)


def _fits(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) is not None


def _fault_of(block: str) -> str:
    """Why this block would not load, or "". Loading's errors quote no value that may be secret."""
    try:
        settings_from_text(block, path=Path("toolcrib.toml").absolute())
    except ConfigError as fault:
        return f"{fault.what} ({fault.hint})"
    return ""


def _is_text(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(text: str) -> str:
    """A name on one line, without control characters."""
    return text if text.isprintable() and text else json.dumps(text)
