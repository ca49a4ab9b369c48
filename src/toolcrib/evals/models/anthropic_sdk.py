"""Requests through Anthropic's SDK (`toolcrib[anthropic]`). The only file that needs it."""

from __future__ import annotations

from typing import Any

from toolcrib.evals.models.protocol import Declined, Wire
from toolcrib.evals.models.sdk import MAX_RETRIES, TIMEOUT_S, module, sent


class AnthropicSender:
    """A client of the Messages API.

    Args:
        base_url: another place than the vendor's; "" for the vendor's.
    Raises:
        ConfigError: the SDK is not installed.
    """

    def __init__(self, api_key: str, *, base_url: str = "") -> None:
        self._sdk: Any = module("anthropic")
        more = {"base_url": base_url} if base_url else {}
        self._client = self._sdk.Anthropic(api_key=api_key, max_retries=MAX_RETRIES, timeout=TIMEOUT_S, **more)

    def send(self, request: Wire) -> Wire | Declined:
        return sent(self._sdk, self._client.messages.with_raw_response.create, request)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()
