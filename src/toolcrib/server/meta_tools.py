"""The three tools of the gateway's own: find, describe, call. Their definitions and what their arguments must be.

Above: `surface.py` lists them, `mcp_gateway.py` answers them. Pure text and schemas.

Invariants
1. The text is a function of the caller's namespaces alone, so it is the same from one request to the next and tells of
   no hidden tool (I1).
2. A listed schema is the very schema that arguments are checked against.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolcrib.types import MAX_LIMIT, JsonObject

FIND = "find_tools"
DESCRIBE = "describe_tools"
CALL = "call_tool"
META_NAMES = (FIND, DESCRIBE, CALL)

MAX_DESCRIBED = 20
MAX_QUERIES = 16
MAX_KEY_CHARS = 200
_MAX_KINDS_SHOWN = 60
_MAX_KIND_CHARS = 60

FIND_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "task": {"type": "string", "description": "What should be done, in plain words."},
        "queries": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": MAX_QUERIES,
            "description": "For a task with several steps: one short phrase for each step.",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "description": "At most so many tools."},
        "token_budget": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1_000_000,
            "description": "Definitions of at most so many tokens together.",
        },
    },
    "required": ["task"],
    "additionalProperties": False,
}

DESCRIBE_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "names": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "maxItems": MAX_DESCRIBED,
            "description": "Names of tools, as find_tools gave them.",
        }
    },
    "required": ["names"],
    "additionalProperties": False,
}

CALL_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "The tool's name, as find_tools or describe_tools gave it."},
        "arguments": {"type": "object", "description": "Arguments that fit the tool's inputSchema."},
        "digest": {
            "type": "string",
            "description": "The digest that came with the definition; if the tool changed since, the call is refused.",
        },
        "idempotency_key": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_KEY_CHARS,
            "description": "A new word of your own, where the same change is meant to be made once more.",
        },
    },
    "required": ["name"],
    "additionalProperties": False,
}


def meta_tools(namespaces: Sequence[str]) -> tuple[JsonObject, ...]:
    """The three definitions, as a caller with these namespaces sees them."""
    kinds = kinds_text(namespaces)
    looks_only = {"readOnlyHint": True, "openWorldHint": False}
    return (
        {
            "name": FIND,
            "title": "Find tools",
            "description": (
                "Find the tools for a task. Gives whole definitions, best first, or says that nothing here fits. "
                f"Run what you found with {CALL}. {kinds}"
            ),
            "inputSchema": FIND_SCHEMA,
            "annotations": looks_only,
        },
        {
            "name": DESCRIBE,
            "title": "Describe tools",
            "description": "Give the whole definitions of tools whose names you know.",
            "inputSchema": DESCRIBE_SCHEMA,
            "annotations": looks_only,
        },
        {
            "name": CALL,
            "title": "Call a tool",
            "description": (
                f"Run a tool that {FIND} or {DESCRIBE} gave. Every call is checked anew: it can be refused, and the "
                "answer then says why and what to change."
            ),
            "inputSchema": CALL_SCHEMA,
            "annotations": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
        },
    )


def kinds_text(namespaces: Sequence[str]) -> str:
    """One sentence that names the kinds of tools: sorted, bounded, on one line."""
    kinds = sorted({" ".join(n.split())[:_MAX_KIND_CHARS] for n in namespaces} - {""})
    if not kinds:
        return "Tools of several kinds are available." if namespaces else "No tools are available to you at present."
    more = len(kinds) - _MAX_KINDS_SHOWN
    rest = f" and {more} more" if more > 0 else ""
    return f"Kinds of tools available to you: {', '.join(kinds[:_MAX_KINDS_SHOWN])}{rest}."
