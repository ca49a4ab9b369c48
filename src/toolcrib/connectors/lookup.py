"""Whose resource is this: the owner's HTTP endpoint asked about one identifier.

    https://orders.internal/v1/orders/{id}  +  "S-204"  ─▶  GET …/orders/S-204  ─▶  {"tenant": "acme", …}

Above: `owners.py`; `gate/resources.py` reads the tenant out of what comes back. Below: `_json_http.py`.

Invariants
1. The identifier comes from a model: it becomes one path segment or one query value, percent-encoded, and can reach no
   other path, host or query than the operator wrote. One that holds a step to another folder (`..`, `a/../b`, `%2e%2e`)
   is not asked about: an owner that decodes once more, or later, than it should would take that step.
2. Only a 200 with JSON is an answer. Everything else is None, which the gate refuses (I2); the log says why.
3. Neither a header's value nor the identifier is written to the log.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from toolcrib.connectors._json_http import exchange, json_of, url_fault

_log = logging.getLogger(__name__)
PLACE: Final = "{id}"
_MAX_ID_CHARS = 1_024
_STAND_IN = "x"
_BETWEEN_PARTS = re.compile(r"[/\\]")


def lookup_url_fault(template: str) -> str:
    """Why this address cannot be used to look resources up, or "": for settings, before anybody asks."""
    if template.count(PLACE) != 1:
        return f"it must have one {PLACE}, the place of the identifier"
    filled = template.replace(PLACE, _STAND_IN)
    if fault := url_fault(filled):
        return fault
    if PLACE in template.partition("://")[2].split("/", 1)[0].split("?", 1)[0]:
        return f"{PLACE} must stand after the host"
    return f"{PLACE} must not stand after a #" if PLACE in template.partition("#")[2] else ""


async def look_up(url: str, *, resource_id: str, headers: Mapping[str, str], timeout_s: float, max_bytes: int) -> Any:
    """The JSON that the owner's endpoint says of one resource, or None when it says none.

    Args:
        url: the operator's template, with `{id}` in its path or query.
        resource_id: as the arguments named it, whole numbers as their digits.
        headers: secrets resolved.
        timeout_s: seconds for the whole exchange. max_bytes: of the answer.
    """
    if fault := lookup_url_fault(url):
        _log.error("a resource's owner cannot be asked: its address is wrong: %s", fault)
        return None
    host = urlsplit(url.replace(PLACE, _STAND_IN)).hostname
    address = _filled(url, resource_id)
    if address is None:
        _log.info("the owner at %s was not asked: what a call names cannot be one identifier", host)
        return None
    answer = await exchange("GET", address, headers=headers, timeout_s=timeout_s, max_bytes=max_bytes)
    if answer.fault:
        _log.warning("the owner at %s could not be asked about a resource: %s", host, answer.fault)
        return None
    if answer.status in (404, 410):
        return None
    if answer.status != 200:
        _log.warning("the owner at %s answered a question about a resource with HTTP %d", host, answer.status)
        return None
    try:
        return json_of(answer)
    except ValueError as fault:
        _log.warning("the owner at %s gave an answer that cannot be used: %s", host, fault)
        return None


def _filled(template: str, resource_id: str) -> str | None:
    """The address with the identifier in its place, or None for one that cannot stand there."""
    if not 0 < len(resource_id) <= _MAX_ID_CHARS or _steps_aside(resource_id):
        return None
    try:
        address = template.replace(PLACE, quote(resource_id, safe=""))
    except UnicodeEncodeError:
        return None
    # Clients and servers resolve `.` and `..`, which percent-encoding leaves as they are.
    segments = urlsplit(address).path.split("/")
    return None if any(segment in (".", "..") for segment in segments) or url_fault(address) else address


def _steps_aside(resource_id: str) -> bool:
    """Whether some part is `.` or `..`, as it is or decoded once; what follows a `;` in a part is dropped by some."""
    parts = [*_BETWEEN_PARTS.split(resource_id), *_BETWEEN_PARTS.split(unquote(resource_id))]
    return any(part.partition(";")[0] in (".", "..") for part in parts)
