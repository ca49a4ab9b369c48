"""Files whose times tick when a test says so, and a clock of our own that passes when a test says so."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


class CoarseFiles:
    """From now on every file has the same times, whenever it was written; see `tick`."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        self._stamp_ns = 1_700_000_000 * 10**9
        honest = Path.stat

        def coarse(path: Path, **more: Any) -> Any:
            found = honest(path, **more)
            fields = {name: getattr(found, name) for name in dir(found) if name.startswith("st_")}
            return SimpleNamespace(**{**fields, "st_mtime_ns": self._stamp_ns, "st_ctime_ns": self._stamp_ns})

        patch.setattr(Path, "stat", coarse)
        patch.setattr("toolcrib.marks._now", lambda: self.now)
        patch.setattr("toolcrib.marks._looks", {})

    def passes(self, seconds: float) -> None:
        """Our own clock moves on; nothing is written."""
        self.now += seconds

    def tick(self) -> None:
        """The next stamp: all files have it, as if each were written again."""
        self._stamp_ns += 2 * 10**9
