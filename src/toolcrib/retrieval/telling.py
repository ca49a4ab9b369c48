"""How much each word of a request tells, by its form alone: what coverage is weighed by.

Stands on `tokenize`; read by `ranker` and `confidence`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from toolcrib.retrieval.tokenize import content_words, query_terms, split_identifier, word_terms

_VALUE_WEIGHT = 0.4
_SHORT, _LONG = 3, 12
_VALUE = re.compile(r"(?<=[\w,)] )[A-Z][a-z]+\b|\b\w*[0-9]\w*\b")


@lru_cache(maxsize=2_048)
def term_weights(text: str) -> Mapping[str, float]:
    """Each term of a query with its say in coverage.

    Longer words say more; values (numbers, capitalised words inside a sentence) say less, they fill arguments. The
    terms of one word share its weight. How rare a word is among the tools plays no part: of forty copies of a weather
    tool each still answers a question about the weather. Remembered: several look at one request.
    """
    values = set(_VALUE.findall(text))
    weights: dict[str, float] = {}
    allowed = {*query_terms(text)}
    for word in content_words(text):
        terms = [term for term in dict.fromkeys(word_terms(word)) if term in allowed and term not in weights]
        length = min(max(len(word), _SHORT), _LONG) * (_VALUE_WEIGHT if word in values else 1.0)
        weights.update({term: length / len(terms) for term in terms})
    return MappingProxyType(weights)


@lru_cache(maxsize=65_536)
def name_words(name: str) -> tuple[str, ...]:
    """The telling words of a tool's name, its parts only. Remembered: hits come again with each request."""
    return query_terms(split_identifier(name))
