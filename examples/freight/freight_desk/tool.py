"""A tool of the desk: a name, a description written by hand, an action; and the MCP definition they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from freight_desk.actions import Action, Change, Move, argument_schema


@dataclass(frozen=True, slots=True)
class Tool:
    """`destructive`: what it does cannot be taken back. `outside`: it reaches people or systems beyond the company."""

    name: str
    description: str
    action: Action
    destructive: bool = False
    outside: bool = False

    def definition(self) -> dict[str, Any]:
        whole = {
            "name": self.name,
            "title": self.name.replace("_", " ").capitalize(),
            "description": self.description,
            "inputSchema": self.input_schema(),
            "annotations": self.annotations(),
        }
        return whole | ({"outputSchema": self.action.output} if self.action.output else {})

    def input_schema(self) -> dict[str, Any]:
        action = self.action
        names = (*action.required, *action.optional)
        one_change = isinstance(action, Change) and not action.needs
        return {
            "type": "object",
            **({"minProperties": len(action.required) + 1} if one_change else {}),
            "properties": {name: argument_schema(action, name) for name in names},
            "required": list(action.required),
            "additionalProperties": False,
        }

    def annotations(self) -> dict[str, bool]:
        if not self.action.writes:
            return {"readOnlyHint": True, "openWorldHint": self.outside}
        return {
            "readOnlyHint": False,
            "destructiveHint": self.destructive,
            "idempotentHint": isinstance(self.action, Change | Move),
            "openWorldHint": self.outside,
        }
