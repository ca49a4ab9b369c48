"""The telling words of each tool's name, as numbers of terms: looked up once, when an index is built.

    tool names ─▶ NameTerms of the index ─▶ (with how much a term tells in a view) what a request says of a name

Stands on `telling` and `lexical`; kept by `index`, read by `ranker`.

Invariant: whether a name's words stand here depends on that tool alone; a name of which a word is in no search document
of its own (it had to be cleaned or cut) is marked, and read as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from toolcrib.retrieval.lexical import Terms
from toolcrib.retrieval.telling import name_words
from toolcrib.types import IntArray

NOT_HERE = -1
"""In place of all words of a name that must be read as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameTerms:
    """Words of names. Tool i has `ids[starts[i]:starts[i + 1]]`, in the name's order.

    Args:
        starts: int64, shape (n_tools + 1,).
        ids: int32, shape (n_entries,): numbers of terms, or `NOT_HERE` alone.
    """

    starts: IntArray
    ids: npt.NDArray[np.int32]

    def of(self, tools: IntArray) -> npt.NDArray[np.int32]:
        """Words of some tools, a column each, filled up with `NOT_HERE` - 1: int32, shape (longest, n)."""
        firsts = self.starts[tools]
        lengths = self.starts[tools + 1] - firsts
        rows = np.arange(int(lengths.max(initial=0)))[:, None]
        at = np.minimum(firsts + rows, len(self.ids) - 1)
        return np.where(rows < lengths, self.ids[at], np.int32(NOT_HERE - 1))


def own_words(name: str, in_document: Sequence[str]) -> tuple[str, ...] | None:
    """The telling words of a name; None where its search document lacks one. `in_document`: terms of the name there."""
    words = name_words(name)
    return words if {*words} <= {*in_document} else None


def name_terms(names: Sequence[tuple[str, ...] | None], terms: Terms) -> NameTerms:
    """From what `own_words` gave for each tool in order."""
    number = {term: n for n, term in enumerate(terms)}
    rows = [[NOT_HERE] if words is None else [number[word] for word in words] for words in names]
    return NameTerms(
        starts=np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64),
        ids=np.array([n for row in rows for n in row], dtype=np.int32),
    )


def joined_name_terms(parts: Sequence[tuple[NameTerms, Terms, IntArray]], *, terms: Terms, n_tools: int) -> NameTerms:
    """Of tools that come from several places, as `name_terms` would give them.

    Args:
        parts: words, the terms that they count, and for each of their tools its number in the whole, or -1 where it is
            left out.
        terms: of the whole.
    """
    number = {term: n for n, term in enumerate(terms)}
    lengths = np.zeros(n_tools, dtype=np.int64)
    tools, ids, turns = [], [], []
    for part, own, place in parts:
        renumbered = np.array([*(number.get(term, NOT_HERE) for term in own), NOT_HERE], dtype=np.int32)
        mine = np.diff(part.starts)
        lengths[place[place >= 0]] = mine[place >= 0]
        tool = np.repeat(place, mine)
        tools.append(tool[tool >= 0])
        ids.append(renumbered[part.ids][tool >= 0])
        turns.append(np.arange(len(tool))[tool >= 0])
    order = np.lexsort((np.concatenate(turns), np.concatenate(tools)))
    return NameTerms(starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), ids=np.concatenate(ids)[order])
