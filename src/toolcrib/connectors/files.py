"""A server that is a file: definitions without anybody to call.

Shapes: one page `{"tools": [...]}` (other fields of a recorded listing beside it are read when present), a list of
pages, either of them as JSON-RPC responses `{"result": {...}}`, and the bare list of tools.

Invariants
1. Values come out as they stand in the file: integers of any size, no key lost. What JSON or a double cannot hold
   (`NaN`, `1e999`, an object with the same key twice) is an error, never a guess.
2. A file whose last page says that more follows is not whole, and is refused.
"""

# ruff: noqa: ARG002  (the signature of `call` is the protocol's)

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from toolcrib.errors import ConnectorError, ConnectorProtocolError
from toolcrib.types import Code, JsonObject, Provenance, ProvenanceKind, ServerListing, ServerSpec, ToolResult

_SHAPES = (
    'expected {"tools": [...]}, its list of tools alone, a list of such pages, or JSON-RPC responses {"result": {...}}'
)
_OUTSIDE_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)')


class FileConnector:
    """A static `tools/list` file."""

    def __init__(self, spec: ServerSpec, *, path: Path) -> None:
        self._spec = spec
        self._path = path

    @property
    def broken(self) -> bool:
        return False

    async def list_tools(self) -> ServerListing:
        return await asyncio.to_thread(self._read)

    async def observed(self) -> Provenance:
        return self._provenance()

    async def ready(self) -> None:
        """Nothing to open."""

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        *,
        timeout_s: float,
        meta: JsonObject | None = None,
        input_schema: JsonObject | None = None,
    ) -> ToolResult:
        message = f"server {self._spec.server_id!r} has definitions only; its tools cannot be called"
        return ToolResult(code=Code.UNAVAILABLE, message=message)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _read(self) -> ServerListing:
        document = parse_strict(self._text(), where=str(self._path))
        pages = _pages(document)
        if len(pages) > self._spec.max_pages:
            raise self._bad(f"holds {len(pages)} pages; max_pages is {self._spec.max_pages}")
        bodies = [self._body(page, number) for number, page in enumerate(pages, start=1)]
        if bodies and bodies[-1].get("nextCursor") is not None:
            raise self._bad("its last page has a nextCursor, so tools are missing", "record the remaining pages, too")
        first = bodies[0] if bodies else {}
        capabilities = first.get("capabilities")
        info = first.get("server")
        return ServerListing(
            server_id=self._spec.server_id,
            tools=tuple(tool for body in bodies for tool in body["tools"]),
            protocol_version=_text_or_empty(first.get("protocolVersion")),
            server_name=_text_or_empty(info),
            server_version=_text_or_empty(first.get("version")),
            instructions=_text_or_empty(first.get("instructions")),
            capabilities=capabilities if isinstance(capabilities, Mapping) else {},
            n_pages=len(bodies),
            provenance=self._provenance(),
        )

    def _provenance(self) -> Provenance:
        """The file by its name. Not by its content: nothing runs behind it, and its definitions are pinned themselves,
        so that a file with one more tool does not take the others out of service."""
        written = Path(self._spec.path)
        place = self._path.name if written.is_absolute() or self._spec.path.startswith("~") else written.as_posix()
        return Provenance(kind=ProvenanceKind.FILE, package=place, note="definitions only; nothing runs behind them")

    def _text(self) -> str:
        try:
            size_bytes = self._path.stat().st_size
            if size_bytes > self._spec.max_list_bytes:
                raise self._bad(f"has {size_bytes} bytes; max_list_bytes is {self._spec.max_list_bytes}")
            return self._path.read_bytes().decode("utf-8-sig")
        except OSError as exc:
            raise ConnectorError(
                f"cannot be read: {exc.strerror}",
                where=f"{self._path} (server {self._spec.server_id!r})",
                hint="check `path` of this server",
            ) from exc
        except UnicodeDecodeError as exc:
            line = exc.object[: exc.start].count(b"\n") + 1
            raise ConnectorProtocolError("is not UTF-8", where=f"{self._path}:{line}") from exc

    def _body(self, page: Any, number: int) -> JsonObject:
        """The result object of one page."""
        if isinstance(page, Mapping) and "tools" not in page:
            if isinstance(page.get("error"), Mapping):
                raise self._bad(f"page {number} is an error response: {str(page['error'].get('message'))[:200]}")
            page = page.get("result")
        if not isinstance(page, Mapping) or not isinstance(page.get("tools"), list):
            raise self._bad(f"page {number} has no list of tools", _SHAPES)
        return page

    def _bad(self, what: str, hint: str = "") -> ConnectorProtocolError:
        return ConnectorProtocolError(what, where=str(self._path), hint=hint)


def _pages(document: Any) -> list[Any]:
    if not isinstance(document, list):
        return [document]
    are_tools = bool(document) and all(
        isinstance(one, Mapping) and isinstance(one.get("name"), str) for one in document
    )
    return [{"tools": document}] if are_tools and "tools" not in document[0] else document


def parse_strict(text: str, *, where: str) -> Any:
    """The JSON value of a text, kept faithfully.

    Raises:
        ConnectorProtocolError: with file, line and column where the parser knows them.
    """

    def refuse_constant(name: str) -> NoReturn:
        found = next((m for m in _OUTSIDE_STRINGS.finditer(text) if m.group(1)), None)
        place = f"{where}:{_line_and_column(text, found.start())}" if found else where
        raise ConnectorProtocolError(f"{name} is not JSON", where=place)

    def finite(digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            raise ConnectorProtocolError(f"the number {digits[:40]} is too large for a double", where=where)
        return value

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise ConnectorProtocolError(
                f"an object has the key {twice[:80]!r} twice",
                where=where,
                hint="which one counts is undefined; keep one",
            )
        return value

    try:
        return json.loads(text, parse_constant=refuse_constant, parse_float=finite, object_pairs_hook=unique_keys)
    except json.JSONDecodeError as exc:
        raise ConnectorProtocolError(f"is not JSON: {exc.msg}", where=f"{where}:{exc.lineno}:{exc.colno}") from exc
    except RecursionError as exc:
        raise ConnectorProtocolError("is nested too deeply", where=where) from exc
    except ValueError as exc:  # an integer of thousands of digits
        raise ConnectorProtocolError(f"holds a number that cannot be read: {exc}", where=where) from exc


def _line_and_column(text: str, offset: int) -> str:
    return f"{text.count(chr(10), 0, offset) + 1}:{offset - text.rfind(chr(10), 0, offset)}"


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""
