"""What both SDK files share: the key from where the operator keeps it, and an SDK's faults in our words, once.

Invariants
1. The key is handed to the SDK and to nothing else: no message, no file, no cache key holds it.
2. An SDK's error is read for its status and the vendor's message; the request is never quoted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

from toolcrib.errors import ConfigError, ConnectorError, ConnectorTimeoutError
from toolcrib.evals.models.protocol import Declined, Wire

MAX_RETRIES = 5
TIMEOUT_S = 180.0
_MAX_MESSAGE_CHARS = 300
_FOR_EVERYBODY = (401, 402, 403, 404)


def module(name: str) -> Any:
    """The SDK of this name. Raises ConfigError where it is not installed."""
    try:
        return import_module(name)
    except ImportError as fault:
        raise ConfigError(
            f"the package {name} is not installed",
            where=f"--provider {name}",
            hint=f"pip install 'toolcrib[{name}]', or --replay with answers that were kept",
        ) from fault


def sent(sdk: Any, create: Callable[..., Any], request: Wire) -> Wire | Declined:
    """The answer to a request as it came, or what the vendor has against it.

    Args:
        sdk: the module, whose exceptions are told apart. create: its call that gives a raw response.
    Raises:
        ConfigError, ConnectorError: as `Sender.send`.
    """
    where = str(sdk.__name__)
    try:
        response = create(**request)
        answer = json.loads(response.http_response.text)
    except sdk.APITimeoutError as fault:
        raise ConnectorTimeoutError(f"no answer within {TIMEOUT_S:.0f} s", where=where, hint="try later") from fault
    except sdk.APIConnectionError as fault:
        raise ConnectorError("cannot be reached", where=where, hint="check the network and --base-url") from fault
    except sdk.APIStatusError as fault:
        return refusal(fault.status_code, _message(fault), where=where, cause=fault)
    except ValueError as fault:
        raise ConnectorError("the answer is not JSON", where=where, hint="check --base-url") from fault
    if not isinstance(answer, dict):
        raise ConnectorError("the answer is no JSON object", where=where, hint="check --base-url")
    return answer


def _message(fault: Any) -> str:
    body = getattr(fault, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else body
    text = inner.get("message") if isinstance(inner, dict) else None
    return " ".join(str(text or "no reason given").split())[:_MAX_MESSAGE_CHARS]


def refusal(status: int, message: str, *, where: str, cause: Exception) -> Declined:
    """What a status other than success means: a value where it is about this request, else raises as `sent`."""
    if status in _FOR_EVERYBODY:
        hint = "check the model's name and --base-url" if status == 404 else "check the key and what it may do"
        raise ConfigError(f"refused with status {status}: {message}", where=where, hint=hint) from cause
    if status in (408, 409, 429) or status >= 500:
        raise ConnectorError(
            f"status {status} after {MAX_RETRIES} retries: {message}",
            where=where,
            hint="run the same command again later: answers so far are kept",
        ) from cause
    return Declined(status=status, message=message)
