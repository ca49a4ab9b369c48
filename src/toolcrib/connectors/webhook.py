"""Asks the operator's own service whether a call may run: one signed POST, and perhaps a decision in the answer.

    POST {"approval_id": …}                X-Toolcrib-Signature: t=<unix>,v1=<hmac-sha256 of "t.body">
    200  {"approval_id": …, "decision": "granted" | "denied", "by": "ann"}       signed in the same way

Above: `approvals.py`, for which the `by` of an answer is an approver like any other. Below: `_json_http.py`.

Invariants
1. A decision counts only under a fresh signature with the shared secret, made for this very request: an answer is bound
   by its `approval_id`, so that one given for another call, or long ago, cannot be played again.
2. Whatever else comes is "no decision yet": the request waits for the command line. Nothing is granted by a mistake.
3. A signature is compared in constant time; neither it nor the secret is written to the log.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import time
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from toolcrib.connectors._json_http import HttpAnswer, exchange, json_of, url_fault
from toolcrib.types import JsonObject

_log = logging.getLogger(__name__)
SIGNATURE_HEADER: Final = "X-Toolcrib-Signature"
MAX_AGE_S: Final = 300.0
_MAX_ANSWER_BYTES = 64 * 1024
_MAX_NAME_CHARS = 200
_SIGNATURE = re.compile(r"t=(\d{1,12}),v1=([0-9a-f]{64})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookAnswer:
    """What the service decided, and who did there. `decision` "" while nobody has; `fault`: why nothing usable came."""

    decision: Literal["granted", "denied", ""] = ""
    by: str = ""
    fault: str = ""


async def notify(url: str, *, body: JsonObject, secret: str, timeout_s: float) -> WebhookAnswer:
    """Tell the service of one request, once, and read its answer.

    Args:
        body: JSON with an `approval_id`; what it holds is shown to the service, so no secret may be in it.
        secret: shared with the service. "" sends no signature and takes no decision.
        timeout_s: seconds for the whole exchange.
    """
    answer = await _asked(url, body=body, secret=secret, timeout_s=timeout_s)
    if answer.fault:
        _log.warning("the approvals webhook at %s gave no decision: %s", _host(url), answer.fault)
    return answer


def signed(body: bytes, *, secret: str, at: float) -> str:
    """The value of the signature header. `at`: seconds since 1970, UTC."""
    stamp = str(int(at))
    mac = hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256)
    return f"t={stamp},v1={mac.hexdigest()}"


def is_signed(body: bytes, header: str, *, secret: str, now: float) -> bool:
    """Whether the header signs this body with this secret, not longer than `MAX_AGE_S` ago (or ahead)."""
    found = _SIGNATURE.fullmatch(header)
    if not secret or found is None:
        return False
    stamp = int(found[1])
    expected = signed(body, secret=secret, at=stamp)
    return hmac.compare_digest(expected, f"t={stamp},v1={found[2]}") and abs(now - stamp) <= MAX_AGE_S


async def _asked(url: str, *, body: JsonObject, secret: str, timeout_s: float) -> WebhookAnswer:
    if fault := url_fault(url):
        return WebhookAnswer(fault=f"its address is wrong: {fault}")
    sent = json.dumps(body, ensure_ascii=True, sort_keys=True).encode()
    headers = {"content-type": "application/json"}
    if secret:
        headers[SIGNATURE_HEADER] = signed(sent, secret=secret, at=time.time())
    answer = await exchange("POST", url, headers=headers, body=sent, timeout_s=timeout_s, max_bytes=_MAX_ANSWER_BYTES)
    if answer.fault:
        return WebhookAnswer(fault=answer.fault)
    if answer.status in (202, 204):
        return WebhookAnswer()
    if answer.status != 200:
        return WebhookAnswer(fault=f"it answered with HTTP {answer.status}")
    return _decision(answer, approval_id=body.get("approval_id"), secret=secret)


def _decision(answer: HttpAnswer, *, approval_id: Any, secret: str) -> WebhookAnswer:
    if not answer.body.strip():
        return WebhookAnswer()
    try:
        said = json_of(answer)
    except ValueError as fault:
        return WebhookAnswer(fault=f"its answer cannot be used: {fault}")
    if not isinstance(said, dict):
        return WebhookAnswer(fault="its answer is no JSON object")
    decision, by = said.get("decision"), said.get("by")
    if decision is None:
        return WebhookAnswer()
    if not is_signed(answer.body, answer.headers.get(SIGNATURE_HEADER.lower(), ""), secret=secret, now=time.time()):
        return WebhookAnswer(fault="its decision is not signed with the shared secret, or not lately")
    if not isinstance(approval_id, str) or not approval_id or said.get("approval_id") != approval_id:
        return WebhookAnswer(fault="its decision is about another request")
    if decision not in ("granted", "denied"):
        return WebhookAnswer(fault='its decision is neither "granted" nor "denied"')
    if not isinstance(by, str) or not by.strip() or not by.isprintable() or len(by) > _MAX_NAME_CHARS:
        return WebhookAnswer(fault="its decision does not say who decided")
    return WebhookAnswer(decision=decision, by=by)


def _host(url: str) -> str:
    """For the log: a path or query may hold a token."""
    try:
        return urlsplit(url).hostname or "?"
    except ValueError:
        return "?"
