"""A service that speaks OpenAI's `/embeddings`: OpenAI, or vLLM, Ollama, LiteLLM and others of one's own.

    POST <url>/embeddings  {"model": …, "input": [texts]}   Authorization: Bearer <key>
    200  {"data": [{"index": 0, "embedding": [numbers]}, …]}

Texts of tools, and of requests, leave this machine for it. Blocks; whoever asks does so in a thread. Stands on
`shaping`; made by `models.py`, which wraps it in `kept.py`.

Invariants
1. The key is read when it is sent, stands in one header, and in no error, log, id or repr; a fault names a status or
   the kind of an error, never what a service said.
2. Plain http goes to this machine only, never through a proxy; a redirect is a fault; an answer is read up to a bound.
3. An answer counts only if it holds one vector of one length for each text, finite, in an order that is certain.
4. A service that is down is left alone for `REST_S`: whoever searches meanwhile has the words alone, at once (I12).
5. A text that the service refuses costs that text its vector and no other: no text opens a rest (I1, I12).
"""

from __future__ import annotations

import ipaddress
import logging
import ssl
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import orjson

from toolcrib.errors import ConfigError, RetrievalError
from toolcrib.retrieval.embedders.shaping import RefusedTextError, Shaping
from toolcrib.retrieval.vectors import Float32Array

BATCH = 64
REST_S = 30.0
_ATTEMPTS = 4
_FIRST_WAIT_S = 0.5
_MAX_WAIT_S = 20.0
_CHARS_PER_TOKEN = 4
_MAX_REFUSED = 8
"""After each so many refused requests about documents, a text known to be harmless tells whether all are."""
_HARMLESS = "a"
_MAX_BYTES_PER_TEXT = 256 * 1024
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_THIS_TEXT = frozenset({400, 413, 422})
"""What is wrong with these is in the request: the service itself is up."""
_HINTS = {
    401: "check [retrieval.model] api_key",
    403: "check [retrieval.model] api_key",
    404: "check [retrieval.model] url (up to and with its /v1) and name",
    429: "its rate limit or quota is used up",
}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What came of one attempt. `fault` says why there are no vectors; `again`: whether another attempt may help."""

    vectors: npt.NDArray[np.float64] | None = None
    fault: str = ""
    hint: str = ""
    again: bool = False
    up: bool = False
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Time, as this file needs it: seconds that only grow, and a wait."""

    now: Callable[[], float] = field(default=time.monotonic)
    wait: Callable[[float], None] = field(default=time.sleep)


class HostedEmbedder:
    """A model behind an address.

    Args:
        url: up to and with its `/v1`; https, or http to this machine. name: the model, as the service calls it.
        api_key: gives the key when it is sent, or None where the service wants none.
        timeout_s: seconds for one attempt; for a request's vector, for all attempts.
    Raises:
        ConfigError: the address must not be asked.
    """

    def __init__(
        self,
        *,
        url: str,
        name: str,
        api_key: Callable[[], str] | None = None,
        shaping: Shaping | None = None,
        timeout_s: float = 10.0,
        clock: Clock | None = None,
    ) -> None:
        _check_url(url)
        self._url = url.rstrip("/") + "/embeddings"
        self._name = name
        self._api_key = api_key
        self._shaping = shaping or Shaping()
        self._timeout_s = timeout_s
        self._clock = clock or Clock()
        self._lock = Lock()
        self._client: Any = None
        self._rests_until = 0.0
        self._n_refused = self._n_given = 0
        self._dim = self._shaping.dim(self._shaping.dimensions, where=name) if self._shaping.dimensions else 0
        self._model_id = self._shaping.model_id("hosted", name, url.rstrip("/"))

    @property
    def model_id(self) -> str:
        """A hash over the address and the model's name: a service that swaps the model behind a name is not noticed."""
        return self._model_id

    @property
    def dim(self) -> int:
        """As configured; else as many as the service gives, which is asked once.

        Raises:
            RetrievalError: it had to be asked and did not answer.
            ConfigError: it gives more than can be compared exactly.
        """
        if not self._dim:
            self._n_given = self._vectors([_HARMLESS], attempts=2, deadline_s=self._timeout_s).shape[1]
            self._dim = self._shaping.dim(self._n_given, where=self._name)
        return self._dim

    def embed_documents(self, texts: Sequence[str]) -> Float32Array:
        asked = [self._cut_text(self._shaping.document(text)) for text in texts]
        rows: list[Float32Array] = []
        for start in range(0, len(asked), BATCH):
            batch = asked[start : start + BATCH]
            rows += self._shaped(self._vectors(batch, attempts=_ATTEMPTS, deadline_s=None))
        return np.array(rows, dtype=np.float32).reshape(-1, self.dim)

    def embed_query(self, text: str) -> Float32Array:
        asked = self._cut_text(self._shaping.query(text))
        return self._shaped(self._vectors([asked], attempts=2, deadline_s=self._timeout_s))[0]

    def _shaped(self, vectors: npt.NDArray[np.float64]) -> list[Float32Array]:
        """Cut to `dim`. Raises RetrievalError where they are too short, or of another length than those before."""
        self._n_given = self._n_given or vectors.shape[1]
        if vectors.shape[1] != self._n_given:
            what = f"it gives {vectors.shape[1]} numbers a text and gave {self._n_given} before"
            raise RetrievalError(what, where=self._name, hint="is it another model now? start anew")
        if vectors.shape[1] < self.dim:
            raise RetrievalError(
                f"it gives {vectors.shape[1]} numbers a text, {self.dim} are wanted",
                where=self._name,
                hint=f"set [retrieval.model] dimensions = {vectors.shape[1]} or less",
            )
        return [self._shaping.cut(vector, dim=self.dim) for vector in vectors]

    def _cut_text(self, text: str) -> str:
        return text[: self._shaping.max_tokens * _CHARS_PER_TOKEN].strip() or "-"  # an empty input is refused

    def _vectors(self, texts: Sequence[str], *, attempts: int, deadline_s: float | None) -> npt.NDArray[np.float64]:
        """One vector for each text: shape (n_texts, n_given). Raises RetrievalError."""
        started = self._clock.now()
        if started < self._rests_until:
            raise RetrievalError("it did not answer a moment ago and is left alone for now", where=self._name)
        answer = _Answer()
        for attempt in range(attempts):
            left = self._timeout_s if deadline_s is None else deadline_s - (self._clock.now() - started)
            answer = self._exchange(texts, timeout_s=left)
            if answer.vectors is not None:
                return answer.vectors
            wait_s = min(max(answer.wait_s, _FIRST_WAIT_S * 2**attempt), _MAX_WAIT_S)
            spent = self._clock.now() - started + wait_s
            if not answer.again or attempt + 1 == attempts or (deadline_s is not None and spent >= deadline_s):
                break
            self._clock.wait(wait_s)
        if not answer.up:
            self._rest(answer)
            raise RetrievalError(answer.fault, where=self._name, hint=answer.hint)
        if deadline_s is None:  # a request is not held up for it
            self._ask_harmless()
        raise RefusedTextError(answer.fault, where=self._name, hint=answer.hint)

    def _ask_harmless(self) -> None:
        """Rest if not the texts are at fault: the service refuses, now and then asked, a harmless one, too."""
        self._n_refused += 1
        if self._n_refused % _MAX_REFUSED == 0:
            answer = self._exchange([_HARMLESS], timeout_s=self._timeout_s)
            if answer.vectors is None:
                self._rest(answer)

    def _rest(self, answer: _Answer) -> None:
        self._rests_until = self._clock.now() + REST_S
        _log.warning("no vectors from %s: %s; search goes by words alone", self._name, answer.fault)

    def _exchange(self, texts: Sequence[str], *, timeout_s: float) -> _Answer:
        import httpx2  # takes 0.2 s, which every command would pay

        headers = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json"}
        if self._api_key is not None:
            headers["authorization"] = f"Bearer {self._api_key()}"
        body = orjson.dumps({"model": self._name, "input": list(texts), "encoding_format": "float"})
        limit = _MAX_BYTES_PER_TEXT * len(texts)
        ends = self._clock.now() + timeout_s
        try:
            with self._opened().stream("POST", self._url, headers=headers, content=body, timeout=timeout_s) as response:
                if response.status_code != 200:
                    return _refused(response.status_code, response.headers)
                read = bytearray()
                for part in response.iter_raw():
                    read += part
                    if len(read) > limit or self._clock.now() > ends:
                        why = f"more than {limit} bytes" if len(read) > limit else f"nothing whole in {timeout_s:g} s"
                        return _Answer(fault=f"its answer was {why}")
        except httpx2.TimeoutException:
            return _Answer(fault=f"it gave no answer within {timeout_s:.3g} s", again=True)
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, ValueError, OSError) as fault:
            # The text of these errors may quote a header's value or the address.
            return _Answer(fault=f"it gave no answer: {type(fault).__name__}", again=True)
        return _parsed(bytes(read), n_texts=len(texts))

    def _opened(self) -> Any:
        """One client for all exchanges: a new connection each time would cost more than most answers."""
        import httpx2

        with self._lock:
            if self._client is None:
                local = urlsplit(self._url).scheme == "http"
                self._client = httpx2.Client(verify=_tls(), trust_env=not local, follow_redirects=False)
                weakref.finalize(self, self._client.close)  # an embedder that is no longer wanted leaves nothing open
            return self._client


def _refused(status: int, headers: Mapping[str, str]) -> _Answer:
    try:
        wait_s = float(headers.get("retry-after", 0))
    except ValueError:  # a date
        wait_s = 0.0
    return _Answer(
        fault=f"it answered {status}",
        hint=_HINTS.get(status, ""),
        again=status in _PASSING,
        up=status in _THIS_TEXT,
        wait_s=wait_s if 0 <= wait_s <= _MAX_WAIT_S else _MAX_WAIT_S,
    )


def _parsed(body: bytes, *, n_texts: int) -> _Answer:
    """The vectors of an answer, in the order of the texts."""
    wrong = _Answer(fault="its answer is not one vector for each text", hint="check [retrieval.model] url and name")
    try:
        rows = orjson.loads(body)["data"]
        places = [row.get("index") for row in rows]
        if all(place is None for place in places):
            places = list(range(len(rows)))
        if len(rows) != n_texts or any(type(place) is not int for place in places):
            return wrong
        if sorted(places) != list(range(n_texts)):
            return wrong
        ordered = [row["embedding"] for _, row in sorted(zip(places, rows, strict=True), key=lambda pair: pair[0])]
        vectors = np.array(ordered, dtype=np.float64)
    except (ValueError, TypeError, KeyError, AttributeError):  # orjson's error is a ValueError
        return wrong
    if vectors.ndim != 2 or not vectors.shape[1] or not np.isfinite(vectors).all():
        return wrong
    return _Answer(vectors=vectors)


def _check_url(url: str) -> None:
    """Raises ConfigError for an address that must not be sent texts and a key, as `settings/fields.py` does."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise ConfigError("this is not an address", where="[retrieval.model] url") from None
    if not host or parts.username is not None or parts.password is not None:
        raise ConfigError("the address of a model is a host without a user", where="[retrieval.model] url")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_this_machine(host)):
        hint = "plain http is for this machine alone"
        raise ConfigError("a model is asked over https", where="[retrieval.model] url", hint=hint)


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@cache
def _tls() -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context()
