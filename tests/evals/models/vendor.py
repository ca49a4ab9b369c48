"""A vendor for tests: speaks the wires of the Messages and the Responses API, and thinks by comparing words.

    Vendor.answered(path, headers, body) ─▶ (status, headers, body)     in this process, for a `LocalSender`
    served(vendor) ─▶ http://127.0.0.1:PORT                             for the vendors' own SDKs

It is strict where a vendor is: names, schemas, results that belong to no call, deferred tools without a search.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from toolcrib.evals.models.protocol import Declined, Wire
from toolcrib.evals.models.sdk import refusal

KEY = "key-that-must-not-show"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_WORDS = re.compile(r"[a-z]+")
_COMMON = {"a", "an", "the", "of", "to", "for", "and", "me", "my", "by", "its", "one"}


@dataclass
class Vendor:
    """What it was asked, and what it is told to fail with.

    Args:
        faults: taken one by one before anything is answered: (status, message).
        most_tools: more of them are too many.
        plain: models that do not reason.
    """

    faults: list[tuple[int, str]] = field(default_factory=list)
    most_tools: int = 10_000
    plain: tuple[str, ...] = ("plain",)
    asked: list[Wire] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)

    def answered(self, path: str, key: str, body: Wire) -> tuple[int, Wire]:
        """Status and body."""
        self.asked.append(body)
        self.keys.add(key)
        if self.faults:
            return _fault(*self.faults.pop(0))
        if key != KEY:
            return _fault(401, "invalid key")
        try:
            if path.endswith("/messages"):
                return 200, self._messages(body)
            if path.endswith("/responses"):
                return 200, self._responses(body)
        except _Refused as refused:
            return _fault(400, str(refused))
        return _fault(404, f"no such path: {path}")

    # --- Messages API

    def _messages(self, body: Wire) -> Wire:
        assert {"model", "max_tokens", "messages"} <= set(body), body.keys()
        tools = body.get("tools", [])
        searching = [tool for tool in tools if str(tool.get("type", "")).startswith("tool_search_tool_")]
        known = [_Known.of(tool, schema="input_schema") for tool in tools if tool not in searching]
        self._check(known, searching=bool(searching))
        history = _History(task=body["messages"][0]["content"])
        open_calls: set[str] = set()
        for message in body["messages"][1:]:
            for block in message["content"]:
                if block["type"] == "tool_use":
                    open_calls.add(block["id"])
                    history.calls.append((block["name"], block["input"]))
                elif block["type"] == "tool_result":
                    _require(block["tool_use_id"] in open_calls, "tool_result without its tool_use")
                    open_calls.discard(block["tool_use_id"])
                    history.results.append((block["content"], bool(block.get("is_error"))))
        _require(not open_calls, "tool_use without its tool_result")
        step = _step(history, known, searching=bool(searching))
        number = len(history.calls)
        content: list[Wire] = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
        if step.loaded is not None:
            content += [
                {
                    "type": "server_tool_use",
                    "id": f"srv_{number}",
                    "name": searching[0]["name"],
                    "input": {"query": "q"},
                },
                {
                    "type": "tool_search_tool_result",
                    "tool_use_id": f"srv_{number}",
                    "content": {
                        "type": "tool_search_tool_search_result",
                        "tool_references": [{"type": "tool_reference", "tool_name": name} for name in step.loaded],
                    },
                },
            ]
        if step.text:
            content.append({"type": "text", "text": step.text})
        content += [
            {"type": "tool_use", "id": f"tu_{number}_{n}", "name": name, "input": arguments}
            for n, (name, arguments) in enumerate(step.calls)
        ]
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "tool_use" if step.calls else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": _tokens(body, known) - 3,
                "cache_read_input_tokens": 2,
                "cache_creation_input_tokens": 1,
                "output_tokens": 20,
            },
        }

    # --- Responses API

    def _responses(self, body: Wire) -> Wire:
        assert body["store"] is False
        _require(
            body["model"] not in self.plain or "include" not in body,
            "Encrypted content is not supported with this model.",
        )
        tools = body.get("tools", [])
        searching = any(tool["type"] == "tool_search" for tool in tools)
        flat = [tool for tool in tools if tool["type"] == "function"]
        for space in (tool for tool in tools if tool["type"] == "namespace"):
            _require(bool(_NAME.fullmatch(space["name"])) and bool(space["description"]), "namespace")
            flat += space["tools"]
        known = [_Known.of(tool, schema="parameters") for tool in flat]
        self._check(known, searching=searching)
        history, open_calls = _History(task=body["input"][0]["content"]), set()
        for item in body["input"][1:]:
            if item["type"] == "function_call":
                _require("id" not in item, "Item not found: it was not stored")
                open_calls.add(item["call_id"])
                history.calls.append((item["name"], json.loads(item["arguments"])))
            elif item["type"] == "function_call_output":
                _require(item["call_id"] in open_calls, "No tool call found for function call output")
                open_calls.discard(item["call_id"])
                history.results.append((item["output"], '"faults"' in item["output"]))
        _require(not open_calls, "No tool output found for function call")
        step = _step(history, known, searching=searching)
        number = len(history.calls)
        output: list[Wire] = [{"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "x"}]
        if step.loaded is not None:
            whole = [tool for tool in flat if tool["name"] in step.loaded]
            output += [
                {"type": "tool_search_call", "id": "ts", "execution": "server", "arguments": {}, "status": "completed"},
                {
                    "type": "tool_search_output",
                    "id": "to",
                    "execution": "server",
                    "status": "completed",
                    "tools": [{"type": "namespace", "name": "x", "description": "x", "tools": whole}],
                },
            ]
        if step.text:
            part = {"type": "output_text", "text": step.text, "annotations": []}
            output.append({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]})
        output += [
            {
                "type": "function_call",
                "id": f"fc_{number}_{n}",
                "call_id": f"call_{number}_{n}",
                "name": name,
                "arguments": json.dumps(arguments),
                "status": "completed",
            }
            for n, (name, arguments) in enumerate(step.calls)
        ]
        spent = _tokens(body, known)
        return {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 0,
            "model": body["model"],
            "status": "completed",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": spent,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": 20,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": spent + 20,
            },
        }

    def _check(self, known: Sequence[_Known], *, searching: bool) -> None:
        names = [tool.name for tool in known]
        _require(all(_NAME.fullmatch(name) for name in names), "a name has characters that are not allowed")
        _require(len(set(names)) == len(names), "tool names must be unique")
        _require(all(tool.schema.get("type") == "object" for tool in known), "input_schema.type: Field required")
        _require(searching or not any(tool.deferred for tool in known), "nothing loads deferred tools")
        _require(searching or len(known) <= self.most_tools, "prompt is too long")


@dataclass(frozen=True)
class _Known:
    name: str
    words: frozenset[str]
    schema: Mapping[str, Any]
    deferred: bool

    @classmethod
    def of(cls, tool: Wire, *, schema: str) -> _Known:
        words = _words(f"{tool['name']} {tool['description']}")
        return cls(name=tool["name"], words=words, schema=tool[schema], deferred=tool.get("defer_loading", False))


@dataclass
class _History:
    task: str
    calls: list[tuple[str, Any]] = field(default_factory=list)
    results: list[tuple[str, bool]] = field(default_factory=list)


@dataclass
class _Step:
    calls: list[tuple[str, Any]] = field(default_factory=list)
    text: str = ""
    loaded: list[str] | None = None


class _Refused(Exception):
    pass


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise _Refused(message)


def _fault(status: int, message: str) -> tuple[int, Wire]:
    return status, {"type": "error", "error": {"type": "error", "message": message}}


def _words(text: str) -> frozenset[str]:
    return frozenset(word[:5] for word in _WORDS.findall(text.lower()) if word not in _COMMON)


def _tokens(body: Wire, known: Sequence[_Known]) -> int:
    """As a vendor counts: what is deferred is not in the context."""
    shown = {key: value for key, value in body.items() if key != "tools"}
    definitions = sum(30 + len(json.dumps(tool.schema)) // 4 for tool in known if not tool.deferred)
    return 10 + len(json.dumps(shown)) // 4 + definitions


def _step(history: _History, known: Sequence[_Known], *, searching: bool) -> _Step:
    """What the model does next: one tool for each part of the task, in order; it mends what was refused."""
    finding = any(tool.name == "find_tools" for tool in known)
    if finding and not history.calls:
        return _Step(calls=[("find_tools", {"task": history.task})])
    if finding:
        found = [_Known.of(e["definition"], schema="inputSchema") for e in json.loads(history.results[0][0])["tools"]]
        made = [(arguments["name"], arguments.get("arguments")) for name, arguments in history.calls[1:]]
        results = history.results[1:]
        step = _chosen(history.task, found, made, results)
        return _Step(
            calls=[("call_tool", {"name": name, "arguments": arguments}) for name, arguments in step.calls],
            text=step.text,
        )
    step = _chosen(history.task, known, history.calls, history.results)
    return _Step(
        calls=step.calls,
        text=step.text,
        loaded=[name for name, _ in step.calls] if searching and not history.calls else None,
    )


def _chosen(
    task: str, known: Sequence[_Known], made: Sequence[tuple[str, Any]], results: Sequence[tuple[str, bool]]
) -> _Step:
    if results and results[-1][1]:
        again = [tool for tool in known if tool.name == made[-1][0]]
        return _Step(
            calls=[(tool.name, _arguments(tool)) for tool in again], text="" if again else "There is no such tool."
        )
    done = sum(not is_error for _, is_error in results)
    parts = task.split(", and ")
    if done >= len(parts):
        return _Step(text=f"Done: {results[-1][0]}")
    best = max(known, key=lambda tool: len(tool.words & _words(parts[done])), default=None)
    if best is None or len(best.words & _words(parts[done])) < 2:
        return _Step(text="No tool does that.")
    badly = "badly" in task
    return _Step(calls=[(best.name, {"nonsense": 1} if badly else _arguments(best))])


def _arguments(tool: _Known) -> dict[str, Any]:
    values = {"string": "A-17", "integer": 17, "array": [], "object": {}}
    return {name: values[one["type"]] for name, one in tool.schema.get("properties", {}).items()}


# --- how it is reached -----------------------------------------------------------------------------------


@dataclass
class LocalSender:
    """The vendor in this process, with what the SDKs make of its refusals."""

    vendor: Vendor
    path: str

    def send(self, request: Wire) -> Wire | Declined:
        status, body = self.vendor.answered(self.path, KEY, json.loads(json.dumps(request)))
        if status == 200:
            return body
        return refusal(status, body["error"]["message"], where="local", cause=ValueError("refused"))


@contextmanager
def served(vendor: Vendor) -> Iterator[str]:
    """The vendor over HTTP. Gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
            if self.path.endswith("/messages"):
                assert self.headers["anthropic-version"]
            status, answer = vendor.answered(self.path, self.headers.get("x-api-key") or bearer, body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.send_header("retry-after-ms", "1")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
