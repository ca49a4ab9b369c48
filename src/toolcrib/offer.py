"""What a caller is handed: an offer (the answer to a select) and the outcome of a call.

Floor 4. Both hold only what this caller may see; `to_dict()` is the contract of the command line and of the gateway.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from toolcrib.providers import anthropic, gemini, mcp, openai
from toolcrib.providers.names import NameTarget, public_name
from toolcrib.types import Code, Outcome, SelectedTool, Selection, Tool, ToolCall, ToolResult, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A selection with the versions it was made under. The versions are digests of what this caller may discover."""

    selection: Selection
    catalog_version: str
    policy_version: str
    index_version: str
    trace_id: str

    @property
    def outcome(self) -> Outcome:
        return self.selection.outcome

    @property
    def message(self) -> str:
        return self.selection.message

    @property
    def tools(self) -> tuple[SelectedTool, ...]:
        return self.selection.tools

    def to_dict(self) -> dict[str, Any]:
        """The whole answer as plain JSON values."""
        chosen = self.selection
        return {
            "outcome": chosen.outcome.value,
            "message": chosen.message,
            "degraded": chosen.degraded,
            "tools": [
                {
                    "tool_id": s.tool.tool_id,
                    "name": public_name(s.tool.tool_id, target=NameTarget.MCP),
                    "rank": s.rank,
                    "score": round(s.score, 6),
                    "capability": s.capability,
                    "tokens": s.tokens,
                    "digest": s.tool.digest,
                    **({"note": s.note} if s.note else {}),
                    "definition": s.tool.definition,
                }
                for s in chosen.tools
            ],
            "dropped": [asdict(d) for d in chosen.dropped],
            "tokens": chosen.tokens,
            "token_budget": chosen.token_budget,
            "limit": chosen.limit,
            "confidence": round(chosen.confidence, 6),
            "catalog_version": self.catalog_version,
            "policy_version": self.policy_version,
            "index_version": self.index_version,
            "trace_id": self.trace_id,
        }

    def _definitions(self) -> tuple[Tool, ...]:
        return tuple(selected.tool for selected in self.selection.tools)

    def to_anthropic(self) -> list[dict[str, Any]]:
        """`tools` for the Anthropic Messages API."""
        return anthropic.tool_definitions(self._definitions())

    def call_from_anthropic(self, block: Any) -> ToolCall:
        """A model's `tool_use` block as a proposed call, bound to the digest that was offered."""
        return anthropic.tool_call_from_anthropic(block, self._definitions())

    def call_from_openai(self, item: Any) -> ToolCall:
        """A model's `function_call` item as a proposed call, bound to the digest that was offered."""
        return openai.tool_call_from_openai(item, self._definitions())

    def to_openai(self) -> list[dict[str, Any]]:
        """`tools` for the OpenAI Responses API."""
        return openai.tool_definitions(self._definitions())

    def to_gemini(self) -> list[dict[str, Any]]:
        """`function_declarations` for the Gemini API."""
        return gemini.tool_definitions(self._definitions())

    def to_mcp(self) -> list[dict[str, Any]]:
        """`tools` as an MCP server would list them: definitions unaltered but for the public name."""
        return mcp.tool_definitions(self._definitions())


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """What became of a call. `result` is None when the gate refused it."""

    code: Code
    message: str
    verdict: Verdict
    result: ToolResult | None
    trace_id: str

    @property
    def ok(self) -> bool:
        return self.code is Code.OK

    def to_dict(self) -> dict[str, Any]:
        """The command line's contract: code, content, structured, trace_id, and what to mend where it was refused."""
        told: dict[str, Any] = {
            "code": self.code.value,
            "message": self.message,
            "content": list(self.result.content) if self.result else [],
            "structured": self.result.structured if self.result else None,
            "trace_id": self.trace_id,
        }
        if self.verdict.faults:
            told["faults"] = [asdict(fault) for fault in self.verdict.faults]
        if self.verdict.approval_id:
            told["approval_id"] = self.verdict.approval_id
        if self.verdict.earlier_trace:
            told["earlier_trace_id"] = self.verdict.earlier_trace
        if self.result and self.result.notes:
            told["notes"] = list(self.result.notes)
        return told
