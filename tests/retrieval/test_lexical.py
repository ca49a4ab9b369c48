"""The lexical arm's memory is bounded by what it takes, whatever is asked."""

from __future__ import annotations

import numpy as np

from toolcrib.retrieval import lexical
from toolcrib.retrieval.document import FIELDS
from toolcrib.retrieval.lexical import LexicalView, build_postings


def test_words_that_nobody_holds_do_not_fill_the_memory() -> None:
    postings = build_postings([[["oak"], *[[] for _ in FIELDS[1:]]]])
    view = LexicalView(postings, np.ones(1, dtype=np.bool_))

    for number in range(20_000):
        view.n_holding(f"unknown{number}")

    # A remembered term takes about 370 bytes, whether or not a tool holds it; an entry takes 16.
    assert len(view._memory.known) * 370 <= view._memory.limit * 16
    assert view.n_holding("oak") == 1
    assert view._memory.limit == lexical._MIN_REMEMBERED
