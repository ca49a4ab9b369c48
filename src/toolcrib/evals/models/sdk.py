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
from urllib.parse import urlsplit

from toolcrib.errors import ConfigError, ConnectorError, ConnectorTimeoutError
from toolcrib.evals.models.protocol import Declined, NotTakenError, Wire
from toolcrib.settings.hosts import is_loopback

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


def place(base_url: str, vendors_own: str) -> str:
    """The address that is asked, never one from the environment: the vendor's own, or the one that was given.

    Raises:
        ConfigError: the key would leave this machine in the clear, or the address is none.
    """
    if not base_url:
        return vendors_own
    try:
        parts = urlsplit(base_url)
        host = parts.hostname or ""
    except ValueError:
        raise ConfigError("this is not an address", where="--base-url") from None
    if not host or parts.username is not None or parts.password is not None:
        raise ConfigError("an address is a host without a user", where="--base-url", hint=f"as {vendors_own}")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        hint = "use https; http is for this machine alone (127.0.0.1)"
        raise ConfigError("the key is sent over https only", where="--base-url", hint=hint)
    return base_url


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
        hint = "check the network and --base-url"
        if type(fault.__cause__).__name__ == "ConnectError":
            raise NotTakenError("cannot be reached", where=where, hint=hint) from fault
        raise ConnectorTimeoutError("the connection ended before an answer", where=where, hint=hint) from fault
    except sdk.APIStatusError as fault:
        return refusal(fault.status_code, _message(fault), where=where, cause=fault, wait_s=_wait_s(fault))
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


def _wait_s(fault: Any) -> float:
    try:
        seconds = float(fault.response.headers.get("retry-after", 0))
    except ValueError:  # a date
        return 0.0
    return seconds if seconds >= 0 else 0.0


def refusal(status: int, message: str, *, where: str, cause: Exception, wait_s: float = 0.0) -> Declined:
    """What a status other than success means: a value where it is about this request, else raises as `sent`."""
    if status in _FOR_EVERYBODY:
        hint = "check the model's name and --base-url" if status == 404 else "check the key and what it may do"
        raise ConfigError(f"refused with status {status}: {message}", where=where, hint=hint) from cause
    if status in (408, 409, 429) or status >= 500:
        again = "run the same command again later: answers so far are kept"
        passing = NotTakenError(f"status {status}: {message}", where=where, hint=again)
        passing.wait_s = wait_s
        raise passing from cause
    return Declined(status=status, message=message)
