"""One request: from the answers that were kept, or from the vendor within the budget.

    request ─▶ kept? ──yes──▶ Answer                     costs nothing now
                 └─no─▶ replay only? ──▶ Declined(0)
                          └─▶ budget? ──no──▶ OverBudget   └─yes─▶ vendor ─▶ kept ─▶ Answer, or Declined

Invariants
1. An answer is kept under the digest of vendor, place, request and number of the repeat; neither the key to the
   vendor nor the request itself is written down.
2. Nothing is sent whose worst case would go past the budget.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from toolcrib.errors import ConfigError, StoreError, ToolcribError
from toolcrib.evals.models.prices import Purse
from toolcrib.evals.models.protocol import Declined, Sender, Turn, Vendor, Wire
from toolcrib.selection.tokens import estimate_text_tokens


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
    """Answers in a folder, one file each.

    Raises:
        ConfigError: the folder cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
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
        young = path.with_suffix(f".{threading.get_ident()}.part")
        try:
            young.write_text(json.dumps({"vendor": vendor, "model": model, "answer": answer}), encoding="utf-8")
            os.replace(young, path)  # noqa: PTH105  # over one that is there, on Windows too
        except OSError as fault:
            raise StoreError(f"an answer cannot be kept: {fault.strerror}", where=str(path)) from fault


class Asking:
    """Answers to requests. Safe to share between threads.

    Args:
        sender: None: only answers that were kept.
        purse: None with a sender of None.
        base_url: where the vendor is, if not at its own place: other answers come from there.
    """

    def __init__(
        self, vendor: Vendor, sender: Sender | None, *, kept: Kept, purse: Purse | None, max_output: int, base_url: str
    ) -> None:
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
        aside = self._purse.put_aside(estimated=estimated, max_output=self._max_output)
        if aside is None:
            return OverBudget()
        try:
            answer = self._sender.send(request)
        except ToolcribError:
            self._purse.give_back(aside)
            raise
        if isinstance(answer, Declined):
            self._purse.give_back(aside)
            return answer
        turn = self._vendor.read(answer)
        self._purse.pay(aside, estimated=estimated, input_tokens=turn.input_tokens, output_tokens=turn.output_tokens)
        self._count(sent=1)
        self._kept.put(key, answer, vendor=self._vendor.name, model=str(request["model"]))
        return Answer(body=answer, turn=turn, kept=False)

    def _count(self, *, sent: int = 0, kept: int = 0) -> None:
        with self._lock:
            self.n_sent += sent
            self.n_kept += kept

    def key(self, request: Wire, *, repeat: int) -> str:
        """Hexadecimal SHA-256 of all that decides about the answer."""
        whole = {"vendor": self._vendor.name, "base_url": self._base_url, "request": request, "repeat": repeat}
        return hashlib.sha256(json.dumps(whole, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
