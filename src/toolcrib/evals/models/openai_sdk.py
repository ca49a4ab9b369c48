"""Requests through OpenAI's SDK (`toolcrib[openai]`). The only file that needs it."""

from __future__ import annotations

from typing import Any

from toolcrib.evals.models.protocol import Declined, Wire
from toolcrib.evals.models.sdk import MAX_RETRIES, TIMEOUT_S, module, sent


class OpenAISender:
    """A client of the Responses API.

    A model that does not reason refuses to be asked for its reasoning: the first such refusal is remembered, and the
    request is sent without.

    Args:
        base_url: another place than the vendor's; "" for the vendor's.
    Raises:
        ConfigError: the SDK is not installed.
    """

    def __init__(self, api_key: str, *, base_url: str = "") -> None:
        self._sdk: Any = module("openai")
        more = {"base_url": base_url} if base_url else {}
        self._client = self._sdk.OpenAI(api_key=api_key, max_retries=MAX_RETRIES, timeout=TIMEOUT_S, **more)
        self._reasons = True

    def send(self, request: Wire) -> Wire | Declined:
        answer = self._sent(request)
        if isinstance(answer, Declined) and self._reasons and "encrypted" in answer.message.lower():
            self._reasons = False
            return self._sent(request)
        return answer

    def _sent(self, request: Wire) -> Wire | Declined:
        asked = request if self._reasons else {key: value for key, value in request.items() if key != "include"}
        return sent(self._sdk, self._client.responses.with_raw_response.create, asked)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()
