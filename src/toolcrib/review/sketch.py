"""A few numbers that stand for a text, so that near-equal texts of a large catalog meet without comparing all pairs.

Source:
    Broder, On the resemblance and containment of documents (1997): minima of hashed shingles.
"""

from __future__ import annotations

import re
import zlib

_WORD = re.compile(r"\w+")
_N_HASHES = 24
_BAND = 3


def sketch(text: str) -> frozenset[int]:
    """The smallest hashes of the text's word triples; texts that share most of them share most of their wording."""
    words = _WORD.findall(text.casefold())
    shingles = {" ".join(words[n : n + 3]) for n in range(max(1, len(words) - 2))}
    return frozenset(sorted(zlib.crc32(one.encode()) for one in shingles)[:_N_HASHES])


def sketch_keys(marks: frozenset[int]) -> tuple[int, ...]:
    """The buckets in which near-equal sketches meet: the smallest hashes of all."""
    return tuple(sorted(marks)[:_BAND])


def likeness(one: frozenset[int], other: frozenset[int]) -> float:
    """About how much of two texts' wording is shared, 0 to 1."""
    if not one or not other:
        return 0.0
    smallest = sorted(one | other)[: min(_N_HASHES, len(one | other))]
    return sum(mark in one and mark in other for mark in smallest) / len(smallest)
