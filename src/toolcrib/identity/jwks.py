"""Key sets of issuers (JWKS, RFC 7517): read from a file or an address, kept, and read again when keys rotate.

Below: `fetch.py`. Above: `jwt.py`.

                   age > refresh_s                     unknown kid
    kept set ──▶ read again, wait  ──▶ new set ◀── read again, wait; after 10 s at the earliest, and after twice as
                        │ fails                      long for each time that it brought no such key, up to refresh_s
                        ▼
              kept set, tried again every 10 s in the background ──▶ after 24 h: no keys, nobody comes in

Invariants
1. A key is used only with algorithms of its kind, and with its own where it names one: a token cannot choose.
2. Nothing here waits on the event loop: addresses are read in a thread, one at a time for each set.
3. Whoever asks waits for one reading at most, and for none while the issuer is down and the kept set serves.
4. However many tokens name keys that there are not, the issuer is asked once in ten seconds, soon once in `refresh_s`.
5. A reading that hangs holds up no other: after ten seconds the next begins, and what the first brings counts no more.
6. A file counts as it is now; one that cannot be read holds no keys.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.exceptions import PyJWTError

from toolcrib.errors import ConfigError, ToolcribError
from toolcrib.identity.fetch import check_url, fetch
from toolcrib.identity.issuers import VerificationKey
from toolcrib.identity.refused import Refused, shown

MAX_BYTES: Final = 512 * 1024
MAX_KEYS: Final = 100
RETRY_S: Final = 10.0
MAX_STALE_S: Final = 24 * 60 * 60.0
_FETCH_S: Final = 5.0
_WAIT_S: Final = _FETCH_S + 1.0
_RSA_BITS: Final = range(2048, 8193)
"""Below, RFC 7518 forbids it; above, one signature costs more time than a request should."""
_CURVES: Final = {"ES256": "secp256r1", "ES384": "secp384r1", "ES512": "secp521r1"}
_KINDS: Final[Mapping[Any, Callable[[Any], Any]]] = {
    "RSA": RSAAlgorithm.from_jwk,
    "EC": ECAlgorithm.from_jwk,
    "OKP": OKPAlgorithm.from_jwk,
}
_FILE_HINT: Final = "keys_file is a JSON Web Key Set with public keys: docs/identity.md shows how to make one"
_log = logging.getLogger(__name__)


def parse_key_set(body: bytes, *, where: str) -> tuple[VerificationKey, ...]:
    """The keys of a JWKS that can check signatures; others are passed over, as RFC 7517 wants it.

    Raises:
        ConfigError: this is not a key set at all.
    """
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        read = None
    entries = read.get("keys") if isinstance(read, dict) else None
    if not isinstance(entries, list) or len(entries) > MAX_KEYS:
        raise ConfigError(
            "this is not a JSON Web Key Set",
            where=where,
            hint=f'{{"keys": [...]}} with {MAX_KEYS} keys at most, no PEM: docs/identity.md shows how to make one',
        )
    return tuple(key for entry in entries if (key := _key(entry)) is not None)


def _key(entry: Any) -> VerificationKey | None:
    """A key for signatures, or None: symmetric, private, for encryption, or malformed ones are none."""
    if not isinstance(entry, dict) or "d" in entry:
        return None
    read = _KINDS.get(str(entry.get("kty")))
    if read is None:
        return None
    kid, algorithm, uses = entry.get("kid"), entry.get("alg", ""), entry.get("key_ops", ["verify"])
    if entry.get("use", "sig") != "sig" or not isinstance(uses, list) or "verify" not in uses:
        return None
    if not isinstance(algorithm, str) or not isinstance(kid, str | None):
        return None
    try:
        return VerificationKey(kid=kid, algorithm=algorithm, key=read(entry))
    except (PyJWTError, UnsupportedAlgorithm, ValueError, TypeError, KeyError):
        return None


def fits(key: VerificationKey, algorithm: str) -> bool:
    """Whether signatures by this algorithm may be checked with this key."""
    if key.algorithm not in ("", algorithm):
        return False
    if algorithm.startswith(("RS", "PS")):
        return isinstance(key.key, RSAPublicKey) and key.key.key_size in _RSA_BITS
    if algorithm == "EdDSA":
        return isinstance(key.key, Ed25519PublicKey | Ed448PublicKey)
    return isinstance(key.key, EllipticCurvePublicKey) and key.key.curve.name == _CURVES.get(algorithm)


def choose(keys: Sequence[VerificationKey], kid: str | None, *, algorithm: str) -> VerificationKey | Refused | None:
    """The one key meant; None when no key has this name, which a rotation may mend."""
    named = [key for key in keys if kid is None or key.kid == kid]
    if not named:
        return None
    fitting = [key for key in named if fits(key, algorithm)]
    if len(fitting) == 1:
        return fitting[0]
    name = "without a name" if kid is None else shown(kid)
    return Refused(f"{len(fitting)} keys {name} fit {algorithm}: there must be one")


class FileKeys:
    """A key set in a file.

    Args:
        mark: changes when the file does; empty when there is none. Asked each time.
    """

    def __init__(self, path: Path, *, mark: Callable[[Path], tuple[object, ...]]) -> None:
        self._path = path
        self._mark_of = mark
        self._mark: tuple[object, ...] = ()
        self._keys: tuple[VerificationKey, ...] = ()

    async def find(self, kid: str | None, *, algorithm: str) -> VerificationKey | Refused:
        """See `KeySource`."""
        try:
            self._read_if_changed()
        except ToolcribError as fault:
            return Refused(str(fault))
        return choose(self._keys, kid, algorithm=algorithm) or _unknown(kid, str(self._path))

    def fault(self) -> ConfigError | None:
        """See `KeySource`."""
        try:
            self._read_if_changed()
        except ConfigError as fault:
            return fault
        if self._keys:
            return None
        return ConfigError("no key of this set can check signatures", where=str(self._path), hint=_FILE_HINT)

    def _read_if_changed(self) -> None:
        where = str(self._path)
        mark = self._mark_of(self._path)
        if mark and mark == self._mark:
            return
        self._mark, self._keys = (), ()
        try:
            with self._path.open("rb") as file:
                body = file.read(MAX_BYTES + 1)
        except OSError as fault:
            words = f"the key set cannot be read: {fault.strerror}"
            raise ConfigError(words, where=where, hint=_FILE_HINT) from fault
        if len(body) > MAX_BYTES:
            raise ConfigError("the key set is larger than 512 KiB", where=where)
        self._mark, self._keys = mark, parse_key_set(body, where=where)


class FetchedKeys:
    """A key set at an address.

    Args:
        refresh_s: seconds after which it is read again before it is used.
        read, clock: for tests; `clock` gives seconds that only grow.
    Raises:
        ConfigError: keys must not come from this address.
    """

    def __init__(
        self,
        url: str,
        *,
        refresh_s: float,
        read: Callable[[], bytes] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_url(url)
        self._url = url
        self._refresh_s = refresh_s
        self._read = read or (lambda: fetch(url, timeout_s=_FETCH_S, max_bytes=MAX_BYTES))
        self._clock = clock
        self._lock = threading.Lock()
        self._loading: Future[None] | None = None
        self._keys: tuple[VerificationKey, ...] = ()
        self._good_at = self._tried_at = float("-inf")
        self._failed = False
        self._pause_s = RETRY_S

    async def find(self, kid: str | None, *, algorithm: str) -> VerificationKey | Refused:
        """See `KeySource`. Waits while the set is read, `_WAIT_S` at most."""
        found = choose(self._usable(), kid, algorithm=algorithm)
        stale = self._age() > self._refresh_s
        if (stale and self._may_read(RETRY_S)) or (found is None and self._may_read(self._pause_s)):
            in_background = self._failed and self._age() <= MAX_STALE_S  # of the last read, so before the next begins
            began, reading = self._begin()
            if began and not stale:  # for a key alone: until one is found so, take it that strangers make them up
                self._pause_s = min(2 * self._pause_s, max(self._refresh_s, RETRY_S))
            if not in_background:
                await _wait(reading)
                was_unknown, found = found is None, choose(self._usable(), kid, algorithm=algorithm)
                if was_unknown and found is not None:
                    self._pause_s = RETRY_S
        return found or _unknown(kid, self._url)

    def fault(self) -> ConfigError | None:
        """See `KeySource`: an address may answer later."""
        return None

    def _age(self) -> float:
        return self._clock() - self._good_at

    def _usable(self) -> tuple[VerificationKey, ...]:
        return self._keys if self._age() <= MAX_STALE_S else ()

    def _may_read(self, pause_s: float) -> bool:
        """Whether one is being read already, which costs nothing more, or the last try is long enough ago."""
        since = self._clock() - self._tried_at
        return since >= pause_s or (self._loading is not None and since < RETRY_S)

    def _begin(self) -> tuple[bool, Future[None]]:
        """The reading to wait for, and whether it began here."""
        with self._lock:
            if self._loading is not None and self._clock() - self._tried_at < RETRY_S:
                return False, self._loading
            reading: Future[None] = Future()
            reading.set_running_or_notify_cancel()  # one request that is cancelled must not cancel it for others
            self._tried_at = self._clock()
            self._loading = reading
            threading.Thread(target=self._load, args=(reading,), name="toolcrib-keys", daemon=True).start()
            return True, reading

    def _load(self, reading: Future[None]) -> None:
        keys: tuple[VerificationKey, ...] | None = None
        try:
            keys = parse_key_set(self._read(), where=self._url)
        except Exception as fault:  # noqa: BLE001 - nobody else could see it, and all requests would wait
            words = fault if isinstance(fault, ToolcribError) else type(fault).__name__
            _log.error("the key set could not be read, the last one is kept for a while: %s", words)
        with self._lock:
            if self._loading is reading:  # else another began meanwhile: this one is of before
                self._loading = None
                self._failed = keys is None
                if keys is not None:
                    self._keys, self._good_at = keys, self._clock()
        reading.set_result(None)


async def _wait(reading: Future[None]) -> None:
    await asyncio.wait([asyncio.wrap_future(reading)], timeout=_WAIT_S)


def _unknown(kid: str | None, where: str) -> Refused:
    return Refused(f"{where} holds no key {'at all' if kid is None else shown(kid)}")
