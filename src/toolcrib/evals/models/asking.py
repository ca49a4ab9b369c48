"""One request: from the answers that were kept, or from the vendor within the budget.

    request ─▶ kept? ──yes──▶ Answer                     costs nothing now
                 └─no─▶ replay only? ──▶ Declined(0)
                          └─▶ budget? ──no──▶ OverBudget   └─yes─▶ vendor ─▶ kept ─▶ Answer, or Declined

Invariants
1. An answer is kept under the digest of vendor, place, request and number of the repeat; neither the key to the
   vendor nor the request itself is written down.
2. Nothing is sent whose worst case would go past the budget: each attempt is put aside for itself, and one of which
   nobody knows what became (no answer in time, one that cannot be read, any other fault) counts as spent in full.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolcrib.errors import ConfigError, ConnectorTimeoutError, StoreError
from toolcrib.evals.files import private_folder, write_private
from toolcrib.evals.models.prices import Purse
from toolcrib.evals.models.protocol import Declined, NotTakenError, Sender, Turn, Vendor, Wire
from toolcrib.selection.tokens import estimate_text_tokens

_ATTEMPTS = 4
_FIRST_WAIT_S = 1.0
_MAX_WAIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer, read. `kept`: it was there already."""

    body: Wire
    turn: Turn
    kept: bool


@dataclass(frozen=True, slots=True)
class OverBudget:
    """The request was not sent: its worst case is more than what is left."""


class Kept:
    """Answers in a folder, one file each, for their owner alone.

    Raises:
        ConfigError: the folder cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            private_folder(folder)
        except OSError as fault:
            raise ConfigError(f"the folder cannot be made: {fault.strerror}", where=str(folder)) from fault

    def get(self, key: str) -> Wire | None:
        """The answer under this key, or None. Raises StoreError for a file that is none."""
        path = self._folder / f"{key}.json"
        try:
            body = json.loads(path.read_bytes())["answer"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as fault:
            raise StoreError("a kept answer cannot be read", where=str(path), hint="remove the file") from fault
        if not isinstance(body, dict):
            raise StoreError("a kept answer is no object", where=str(path), hint="remove the file")
        return body

    def put(self, key: str, answer: Wire, *, vendor: str, model: str) -> None:
        """Keep an answer; whole or not at all. Raises StoreError."""
        path = self._folder / f"{key}.json"
        try:
            write_private(path, json.dumps({"vendor": vendor, "model": model, "answer": answer}))
        except OSError as fault:
            raise StoreError(f"an answer cannot be kept: {fault.strerror}", where=str(path)) from fault


class Asking:
    """Answers to requests. Safe to share between threads.

    Args:
        sender: None: only answers that were kept.
        purse: None with a sender of None.
        base_url: where the vendor is, if not at its own place: other answers come from there.
        wait: waits so many seconds, between attempts.
    """

    def __init__(
        self,
        vendor: Vendor,
        sender: Sender | None,
        *,
        kept: Kept,
        purse: Purse | None,
        max_output: int,
        base_url: str,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._wait = wait
        self._vendor, self._sender, self._kept, self._purse = vendor, sender, kept, purse
        self._max_output, self._base_url = max_output, base_url
        self.n_sent = 0
        self.n_kept = 0
        self._lock = threading.Lock()

    def ask(self, request: Wire, *, repeat: int, tool_tokens: int) -> Answer | Declined | OverBudget:
        """The answer to a request.

        Args:
            repeat: which of the repeats asks, from 1: each has answers of its own.
            tool_tokens: estimated tokens of the request's `tools`, worked out once for many requests.
        Raises:
            ToolcribError: as `Sender.send`, `Vendor.read`, `Kept`.
        """
        key = self.key(request, repeat=repeat)
        body = self._kept.get(key)
        if body is not None:
            self._count(kept=1)
            return Answer(body=body, turn=self._vendor.read(body), kept=True)
        if self._sender is None or self._purse is None:
            return Declined(status=0, message="this answer was not kept")
        said = {name: value for name, value in request.items() if name != "tools"}
        estimated = tool_tokens + estimate_text_tokens(json.dumps(said, ensure_ascii=False))
        answered = self._sent(self._sender, self._purse, request, estimated=estimated)
        if not isinstance(answered, tuple):
            return answered
        answer, turn = answered
        self._count(sent=1)
        self._kept.put(key, answer, vendor=self._vendor.name, model=str(request["model"]))
        return Answer(body=answer, turn=turn, kept=False)

    def _sent(
        self, sender: Sender, purse: Purse, request: Wire, *, estimated: int
    ) -> tuple[Wire, Turn] | Declined | OverBudget:
        """The answer, after a few attempts where the vendor did not take the request or did not answer."""
        for attempt in range(1, _ATTEMPTS + 1):
            aside = purse.put_aside(estimated=estimated, max_output=self._max_output)
            if aside is None:
                return OverBudget()
            try:
                answer = sender.send(request)
                turn = None if isinstance(answer, Declined) else self._vendor.read(answer)
            except (NotTakenError, ConnectorTimeoutError) as fault:
                free = isinstance(fault, NotTakenError)
                (purse.give_back if free else purse.spend)(aside)
                if attempt == _ATTEMPTS:
                    raise
                asked_s = fault.wait_s if isinstance(fault, NotTakenError) else 0.0
                self._wait(min(max(asked_s, _FIRST_WAIT_S * 2 ** (attempt - 1)), _MAX_WAIT_S))
                continue
            except ConfigError:  # a wrong key, an unknown model
                purse.give_back(aside)
                raise
            except BaseException:
                purse.spend(aside)
                raise
            if isinstance(answer, Declined) or turn is None:
                purse.give_back(aside)
                assert isinstance(answer, Declined)
                return answer
            purse.pay(aside, estimated=estimated, input_tokens=turn.input_tokens, output_tokens=turn.output_tokens)
            return answer, turn
        raise AssertionError("the last attempt returns or raises")

    def _count(self, *, sent: int = 0, kept: int = 0) -> None:
        with self._lock:
            self.n_sent += sent
            self.n_kept += kept

    def key(self, request: Wire, *, repeat: int) -> str:
        """Hexadecimal SHA-256 of all that decides about the answer."""
        whole = {"vendor": self._vendor.name, "base_url": self._base_url, "request": request, "repeat": repeat}
        return hashlib.sha256(json.dumps(whole, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
