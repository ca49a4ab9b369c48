"""Requests through OpenAI's SDK (`toolcrib[openai]`). The only file that needs it."""

from __future__ import annotations

from typing import Any

from toolcrib.evals.models.protocol import Declined, Wire
from toolcrib.evals.models.sdk import TIMEOUT_S, module, place, sent

URL = "https://api.openai.com/v1"


class OpenAISender:
    """A client of the Responses API.

    A model that does not reason refuses to be asked for its reasoning: the first such refusal is remembered, and the
    request is sent without.

    Args:
        base_url: another place than the vendor's; "" for the vendor's, whatever the environment says.
    Raises:
        ConfigError: the SDK is not installed; the key would leave this machine in the clear.
    """

    def __init__(self, api_key: str, *, base_url: str = "") -> None:
        self._sdk: Any = module("openai")
        self.url = place(base_url, URL)
        self._client = self._sdk.OpenAI(api_key=api_key, base_url=self.url, max_retries=0, timeout=TIMEOUT_S)
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
