"""One desk: its records, and the way a tool is called on them. Knows nothing of MCP.

1. Arguments are checked against the tool's own schema before anything runs.
2. Every write that succeeded is in the audit table, and in the file if there is one, before its answer leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

from jsonschema import Draft202012Validator

from freight_desk.actions import Arguments
from freight_desk.catalog import ALL
from freight_desk.records import DeskError, Record, Records, now
from freight_desk.tool import Tool


class Desk:
    """`state`: where records are kept between processes; None for memory alone. `tools`: what this release offers."""

    def __init__(self, state: Path | None = None, *, tools: Sequence[Tool] = ALL) -> None:
        self.records = Records(state)
        self.tools = {tool.name: tool for tool in tools}
        self._validators = {tool.name: Draft202012Validator(tool.input_schema()) for tool in tools}

    def call(self, name: str, arguments: Arguments) -> Record:
        """What the tool gives. The answer is the caller's own copy.

        Raises:
            KeyError: there is no such tool.
            DeskError: `invalid` for wrong arguments; else what the tool itself says.
        """
        tool = self.tools[name]
        faults = [f"{fault.json_path}: {fault.message}" for fault in self._validators[name].iter_errors(arguments)]
        if faults:
            raise DeskError("invalid", "; ".join(sorted(faults)))
        answer = deepcopy(tool.action.run(self.records, arguments))
        if tool.action.writes:
            about = next(iter(arguments.values()), "")
            self.records.add("audit", {"tool": name, "about": about, "at": now()})
            self.records.save()
        return answer
