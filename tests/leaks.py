"""Faults that more than one proof of non-interference must notice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolcrib.retrieval import search as search_module


def global_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Document frequencies and lengths over the whole catalog, hidden tools masked only in the scores."""
    honest = search_module.LexicalView

    class Leaky(honest):  # type: ignore[misc, valid-type]
        def __init__(self, postings: Any, permitted: Any) -> None:
            super().__init__(postings, np.ones_like(permitted))
            self._rows = np.flatnonzero(permitted)

        def scores(self, *args: Any) -> Any:
            return super().scores(*args)[self._rows]

    monkeypatch.setattr(search_module, "LexicalView", Leaky)
