"""A question to one surface, and its answer as the very bytes that a caller would see.

Above: `isolation.py` asks the same twice and compares. Beside: `library.py`, `mcp_wire.py`, `http_wire.py`; the
command line's surface comes from `cli/`, which stands above.

Invariants
1. Only what is random by design is blanked (ids of traces, approvals and sessions) or tells the time; all else counts.
2. Answers come in the order of the requests; one that failed is told by its exception's type, which counts, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from toolcrib.crib import Crib
from toolcrib.types import Caller
from toolcrib.verify.questions import Questions

_RANDOM = re.compile(
    rb'(\\*"(?:trace_id|earlier_trace_id|earlier_trace|approval_id)\\*"\s*:\s*\\*")[0-9a-f]{32}(?=\\*")'
)
_CLOCK = re.compile(rb'(\\*"(?:at|created_at|expires_at)\\*"\s*:\s*\\*")\d{4}-\d\d-\d\dT[0-9:.+Z-]+(?=\\*")')


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question. `what`: in words, for people. `body`: JSON text, all that the surface needs to ask it."""

    surface: str
    what: str
    body: str

    def read(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where a caller sits: the crib it asks. `profile`: its caller file, relative to the crib's `folder`."""

    folder: Path
    crib: Crib
    caller: Caller
    profile: str


class Surface(Protocol):
    """One way to see a crib."""

    name: str

    def requests(self, questions: Questions) -> Sequence[Request]:
        """All that is asked here."""
        ...

    def answers(self, seat: Seat, requests: Sequence[Request]) -> list[bytes]:
        """The answers to some of them, as bytes. Called outside of any event loop."""
        ...


def request(surface: str, what: str, body: Any) -> Request:
    return Request(surface=surface, what=what, body=json.dumps(body))


def as_bytes(value: Any) -> bytes:
    """A value as JSON in its own order."""
    return json.dumps(value, ensure_ascii=False, default=_plain).encode("utf-8", "surrogatepass")


def comparable(answer: bytes) -> bytes:
    """The answer without what differs from one request to the next by design."""
    return _CLOCK.sub(rb"\1TIME", _RANDOM.sub(rb"\1RANDOM", answer))


def failed(fault: Exception) -> bytes:
    """An answer that did not come."""
    return f"raised {type(fault).__name__}".encode()


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)
