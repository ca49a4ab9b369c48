"""A gateway over stdio with an in-memory crib, a process of its own. It prints, too: that must not reach the wire."""

from __future__ import annotations

import sys

import anyio

from gateway.fakes import FakeCrib, tool
from toolcrib.server.stdio import serve_stdio
from toolcrib.types import Caller, JsonObject


def answer(arguments: JsonObject) -> JsonObject:
    print("a stray line from a library")  # noqa: T201
    sys.stdout.flush()
    return {"content": [{"type": "text", "text": "ünï\u2028 ok"}], "structuredContent": {**arguments}}


crib = FakeCrib()
crib.put(tool("freight.shipment_get", {"x-top": [None]}, preload=True), answer=answer)
crib.put(tool("billing.invoice_get", preload=True), known_to=frozenset({"bob"}))
anyio.run(lambda: serve_stdio(crib, caller=lambda: Caller(subject="ada")))
