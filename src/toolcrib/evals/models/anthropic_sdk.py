"""Requests through Anthropic's SDK (`toolcrib[anthropic]`). The only file that needs it."""

from __future__ import annotations

from typing import Any

from toolcrib.evals.models.protocol import Declined, Wire
from toolcrib.evals.models.sdk import TIMEOUT_S, module, place, sent

URL = "https://api.anthropic.com"


class AnthropicSender:
    """A client of the Messages API.

    Args:
        base_url: another place than the vendor's; "" for the vendor's, whatever the environment says.
    Raises:
        ConfigError: the SDK is not installed; the key would leave this machine in the clear.
    """

    def __init__(self, api_key: str, *, base_url: str = "") -> None:
        self._sdk: Any = module("anthropic")
        self.url = place(base_url, URL)
        self._client = self._sdk.Anthropic(api_key=api_key, base_url=self.url, max_retries=0, timeout=TIMEOUT_S)

    def send(self, request: Wire) -> Wire | Declined:
        return sent(self._sdk, self._client.messages.with_raw_response.create, request)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()
