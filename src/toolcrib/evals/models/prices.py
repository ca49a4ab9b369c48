"""What tokens cost, and what was spent. All prices are US dollars per million tokens.

Invariants
1. An unknown model has no price: it is asked for, not guessed.
2. All input counts at the full price, what the vendor took from its cache, too: a cost here is at most too high.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass

from toolcrib.errors import ConfigError

_DATED = re.compile(r"-20\d{2}-?\d{2}-?\d{2}$")
_PER = 1_000_000
_CLAUDE = "the vendor's page of models (platform.claude.com/docs/en/models/overview), read 2026-11-30"
_OPENAI = "pages that quote the vendor's price list as of June 2026, read 2026-11-30"


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens, and where that is from."""

    input_usd: float
    output_usd: float
    source: str

    def of(self, *, input_tokens: float, output_tokens: float) -> float:
        """US dollars for so many tokens."""
        return (input_tokens * self.input_usd + output_tokens * self.output_usd) / _PER


_KNOWN = {
    "anthropic": (
        _CLAUDE,
        {
            "claude-fable-5-2": (8.0, 40.0),
            "claude-fable-5-1": (10.0, 50.0),
            "claude-opus-5-5": (4.0, 20.0),
            "claude-opus-5": (5.0, 25.0),
            "claude-sonnet-5-5": (2.0, 10.0),
            "claude-sonnet-5": (2.0, 10.0),
            "claude-haiku-4-5": (1.0, 5.0),
        },
    ),
    "openai": (
        _OPENAI,
        {
            "gpt-5.5": (5.0, 30.0),
            "gpt-5.4": (2.5, 15.0),
            "gpt-5.4-mini": (0.75, 4.5),
            "gpt-5.4-nano": (0.2, 1.25),
        },
    ),
}


def price_of(vendor: str, model: str, *, given: tuple[float | None, float | None] = (None, None)) -> Price:
    """The price of a model: what was given, or what is known of it, with or without the date in its name.

    Args:
        given: (input, output), each None where not given.
    Raises:
        ConfigError: one is not given and not known, or is below 0.
    """
    if any(price is not None and not price >= 0 for price in given):
        raise ConfigError("a price is 0 or more", where="--price-in, --price-out")
    source, table = _KNOWN.get(vendor, ("", {}))
    known = table.get(model) or table.get(_DATED.sub("", model))
    inward, outward = given
    if inward is not None and outward is not None:
        return Price(input_usd=inward, output_usd=outward, source="as given")
    if known is None:
        raise ConfigError(
            f"no price is known for {vendor} {model}",
            where="--model",
            hint="give both, in US dollars per million tokens: --price-in 1 --price-out 5",
        )
    return Price(
        input_usd=known[0] if inward is None else inward,
        output_usd=known[1] if outward is None else outward,
        source=source if inward is None and outward is None else f"partly as given; {source}",
    )


FIRST_RATIO = 1.3
"""Tokens of a vendor for one that is estimated, before any answer came: estimates are of o200k, and vendors add their
own text about tools."""


class Purse:
    """A budget, what was spent of it, and what is on its way. Safe to share between threads.

    Before a request its worst case is put aside: its estimated tokens, made larger by how far the vendor's count was
    ever above the estimate, and the whole of the output it may give. What it really cost takes that place after.
    """

    def __init__(self, price: Price, *, budget_usd: float) -> None:
        self.price = price
        self.budget_usd = budget_usd
        self.spent_usd = 0.0
        self._aside_usd = 0.0
        self._worst = FIRST_RATIO
        self._lock = threading.Lock()

    def put_aside(self, *, estimated: int, max_output: int) -> float | None:
        """US dollars for a request of so many estimated tokens, whatever comes back; None where that is not left."""
        with self._lock:
            most = self.price.of(input_tokens=estimated * self._worst, output_tokens=max_output)
            if self.spent_usd + self._aside_usd + most > self.budget_usd:
                return None
            self._aside_usd += most
            return most

    def give_back(self, aside_usd: float) -> None:
        """The request cost nothing."""
        with self._lock:
            self._aside_usd -= aside_usd

    def spend(self, aside_usd: float) -> None:
        """The request may have cost all that was put aside: nobody knows what became of it."""
        with self._lock:
            self._aside_usd -= aside_usd
            self.spent_usd += aside_usd

    def pay(self, aside_usd: float, *, estimated: int, input_tokens: int, output_tokens: int) -> None:
        """Take what the request cost, and learn from its count."""
        with self._lock:
            self._aside_usd -= aside_usd
            self.spent_usd += self.price.of(input_tokens=input_tokens, output_tokens=output_tokens)
            if estimated:
                self._worst = max(self._worst, input_tokens / estimated)
