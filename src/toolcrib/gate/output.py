"""What comes back from a server, before a caller sees it: content types, the output schema, injected instructions.

    depth ▸ content types ▸ output schema ▸ scan      the first two may refuse the result whole; the others add notes

Above: `sending.py`, once for each result, after the size bound. Below: `scan.py`, `arguments.py` (schemas compiled).

Invariants
1. A result is passed on whole or not at all: no block is taken out of it, no value in it is changed.
2. What does not fit the output schema is reported, not dropped: the call was made, and its answer is still an answer.
3. Notes hold places and expectations, never a value; what a server wrote in them is cut and made printable.
4. A block that nobody here understands is refused: its type could mean anything to a client.
5. A result nested so deep that readers of JSON give up is refused, so that none of those behind has to.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import jsonschema_rs

from toolcrib.errors import InvalidDefinitionError
from toolcrib.gate.arguments import compile_schema, is_json
from toolcrib.gate.faults import argument_faults
from toolcrib.gate.masking import cut, kind_of
from toolcrib.gate.scan import possible_instructions
from toolcrib.types import Code, JsonObject, Tool, ToolResult

_MAX_FAULTS = 5
_MAX_NAME_CHARS = 80
_MAX_DEPTH = 200
"""Levels of a result. What came over a wire has fewer: its parser gives up at about as many."""
_MAX_PATH_CHARS = 120
_LEAVES = frozenset((str, int, float, bool, type(None)))
_CONTAINERS = (dict, list, tuple, Mapping)
_UNNAMED_TEXT = "text/plain"
_UNNAMED = "application/octet-stream"
_REFUSED = (
    "The tool ran, and its answer holds {what}, which may not be passed on. Nothing of the answer is shown. "
    "Calling it again will not change that."
)


class OutputChecker:
    """Structured content against output schemas, compiled once for each definition. Safe to share between threads."""

    def __init__(self, *, max_schemas: int = 1_024) -> None:
        self._max_schemas = max_schemas
        self._compiled: OrderedDict[str, jsonschema_rs.Validator | None] = OrderedDict()
        self._lock = threading.Lock()

    def notes(self, tool: Tool, result: ToolResult) -> tuple[str, ...]:
        """What does not fit the tool's output schema; empty when all fits or the tool has no such schema."""
        schema = tool.definition.get("outputSchema")
        if schema is None or schema is True:
            return ()
        if result.structured is None and "structuredContent" not in (result.raw or {}):
            return ("output_schema: structuredContent: expected, got nothing",)
        validator = self._validator(tool, schema)
        if validator is None or not isinstance(schema, Mapping):
            return ("output_schema: it cannot be compiled, so nothing was checked",)
        if not is_json(result.structured):
            return ("output_schema: structuredContent: expected plain JSON, not nested too deeply",)
        faults = argument_faults(validator.iter_errors(result.structured), schema=schema)
        notes = [f"output_schema: {_place(fault.path)}: expected {_printable(fault.expected)}" for fault in faults]
        more = [f"output_schema: and {len(notes) - _MAX_FAULTS} more"] if len(notes) > _MAX_FAULTS else []
        return (*notes[:_MAX_FAULTS], *more)

    def _validator(self, tool: Tool, schema: Any) -> jsonschema_rs.Validator | None:
        """None where the schema cannot be compiled, which is remembered, too."""
        with self._lock:
            if tool.digest in self._compiled:
                self._compiled.move_to_end(tool.digest)
                return self._compiled[tool.digest]
        try:
            compiled = compile_schema(schema)
        except InvalidDefinitionError:
            compiled = None
        with self._lock:
            self._compiled[tool.digest] = compiled
            if len(self._compiled) > self._max_schemas:
                self._compiled.popitem(last=False)
        return compiled


def checked(
    result: ToolResult, tool: Tool, *, content_types: Sequence[str], scan: bool, checker: OutputChecker
) -> ToolResult:
    """The result with notes, or a tool error in its place when it holds content that may not be passed on.

    Args:
        content_types: globs on MIME types that may be passed on, case does not count; empty means any type. `text/*`
            covers text blocks; structured content is JSON always and is not asked for its type.
        scan: whether to label texts that look like instructions to a model.
    """
    if _is_deeper(_distinct(result), than=_MAX_DEPTH):
        return _refusal(result, "values nested too deeply", note=f"depth: more than {_MAX_DEPTH} levels")
    if refused := _refused_content(result.content, content_types):
        return _refusal(result, refused, note=f"content_type: {refused}")
    notes: list[str] = []
    if result.code is Code.OK:
        notes += checker.notes(tool, result)
    if scan:
        notes += [f"possible_instructions: {rule}" for rule in possible_instructions(_texts(result))]
    if not notes:
        return result
    return replace(result, notes=(*result.notes, *notes))


def _refusal(result: ToolResult, what: str, *, note: str) -> ToolResult:
    """An error in place of the result; of that stays only how far its request came."""
    message = _REFUSED.format(what=what)
    return replace(result, code=Code.TOOL_ERROR, message=message, content=(), structured=None, raw=None, notes=(note,))


def _distinct(result: ToolResult) -> list[Any]:
    """What the result holds, without looking twice at what `raw` holds, too, as it does for all that came by wire."""
    raw = result.raw or {}
    blocks = raw.get("content")
    known = {id(raw.get("structuredContent"))} | ({id(b) for b in blocks} if isinstance(blocks, list) else set())
    return [raw, *(one for one in (result.structured, *result.content) if id(one) not in known)]


def _is_deeper(value: Any, *, than: int) -> bool:
    """Whether containers lie deeper in each other than this. Level by level, each one once: rings end, too."""
    level = [value]
    for _ in range(than + 1):
        inside = (outer.values() if isinstance(outer, Mapping) else outer for outer in level)
        others = [one for many in inside for one in many if type(one) not in _LEAVES]  # nearly all are, and told fast
        level = list({id(one): one for one in others if isinstance(one, _CONTAINERS)}.values())
        if not level:
            return False
    return True


def _refused_content(content: Sequence[JsonObject], globs: Sequence[str]) -> str:
    """What in the content may not be passed on, in words for the caller; "" when all may."""
    lowered = [glob.lower() for glob in globs]
    for block in content:
        kind = block.get("type")
        if not isinstance(kind, str) or kind not in _MIME_TYPES:
            named = _printable(kind, at=_MAX_NAME_CHARS) if isinstance(kind, str) else kind_of(kind)
            return f"a block of type {named}, which is not understood here"
        declared = _MIME_TYPES[kind](block)
        mime_type = declared.partition(";")[0].strip().lower()
        if lowered and not any(fnmatchcase(mime_type, glob) for glob in lowered):
            return f"content of type {_printable(declared, at=_MAX_NAME_CHARS)}"
    return ""


def _of_text(_block: JsonObject) -> str:
    return _UNNAMED_TEXT


def _of_media(block: JsonObject) -> str:
    """Images, sounds and links; a link's type is that of what it leads to."""
    declared = block.get("mimeType")
    return declared if isinstance(declared, str) and declared.strip() else _UNNAMED


def _of_resource(block: JsonObject) -> str:
    """An embedded resource; text without a type is plain text, as everywhere in MCP."""
    resource = block.get("resource")
    if not isinstance(resource, Mapping):
        return _UNNAMED
    declared = resource.get("mimeType")
    if isinstance(declared, str) and declared.strip():
        return declared
    return _UNNAMED_TEXT if isinstance(resource.get("text"), str) and "blob" not in resource else _UNNAMED


_MIME_TYPES = {
    "text": _of_text,
    "image": _of_media,
    "audio": _of_media,
    "resource_link": _of_media,
    "resource": _of_resource,
}
"""The content blocks of MCP, each with the way to its MIME type."""


def _texts(result: ToolResult) -> Iterator[str]:
    """Every text that may reach a model: of blocks, of embedded resources, of structured content, names included."""
    stack: list[Any] = [result.structured, *result.content]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            yield from (name for name in value if isinstance(name, str))
            # Encoded bytes hold no words, and are long.
            stack.extend(inner for name, inner in value.items() if name not in ("data", "blob") or not _is_coded(value))
        elif isinstance(value, list | tuple):
            stack.extend(value)


def _is_coded(holder: Mapping[str, Any]) -> bool:
    """Whether this is an image or audio block, or a resource given as a blob."""
    return holder.get("type") in ("image", "audio") or ("blob" in holder and "uri" in holder)


def _place(path: str) -> str:
    return _printable(path, at=_MAX_PATH_CHARS) or "structuredContent"


def _printable(text: str, *, at: int = 400) -> str:
    """A server's word inside one of ours: one line, nothing hidden, not long."""
    return cut("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text), at=at)
