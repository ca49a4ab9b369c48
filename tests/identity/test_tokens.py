"""Bearer tokens: the right caller or none, and no token ever shown."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from toolcrib.errors import ConfigError
from toolcrib.identity.tokens import TokenTable
from toolcrib.types import Caller

ANN, BEN = Caller(subject="ann"), Caller(subject="ben")
TOKEN_A, TOKEN_B = "a" * 15 + "1", "a" * 15 + "2"


def test_a_token_gives_its_caller() -> None:
    table = TokenTable([(TOKEN_A, ANN), (TOKEN_B, BEN)])
    assert table.resolve(TOKEN_A) == ANN
    assert table.resolve(TOKEN_B) == BEN


@pytest.mark.parametrize(
    "presented",
    [
        pytest.param("", id="empty"),
        pytest.param(TOKEN_A[:-1], id="prefix"),
        pytest.param(TOKEN_A + "x", id="longer"),
        pytest.param(TOKEN_A.upper(), id="case"),
        pytest.param(" " + TOKEN_A, id="spaced"),
        pytest.param("ann", id="subject"),
        pytest.param("é", id="not-ascii"),
        pytest.param("\ud800", id="surrogate"),
        pytest.param(hashlib.sha256(TOKEN_A.encode()).hexdigest(), id="digest"),
    ],
)
def test_anything_else_gives_nobody(presented: str) -> None:
    assert TokenTable([(TOKEN_A, ANN), (TOKEN_B, BEN)]).resolve(presented) is None


def test_an_empty_table_knows_nobody() -> None:
    table = TokenTable([])
    assert len(table) == 0
    assert table.resolve(TOKEN_A) is None


@pytest.mark.parametrize("presented", [TOKEN_A, TOKEN_B, "nobody's"], ids=["first", "last", "none"])
def test_every_entry_is_compared_in_constant_time_whichever_matches(
    monkeypatch: pytest.MonkeyPatch, presented: str
) -> None:
    table = TokenTable([(TOKEN_A, ANN), (TOKEN_B, BEN)])
    compared: list[tuple[int, int]] = []
    plain = hmac.compare_digest

    def counting(known: bytes, given: bytes) -> bool:
        compared.append((len(known), len(given)))
        return plain(known, given)

    monkeypatch.setattr(hmac, "compare_digest", counting)
    table.resolve(presented)
    assert compared == [(32, 32), (32, 32)]


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([("", ANN)], id="empty"),
        pytest.param([("hunter2-hunter2", ANN)], id="one-short"),
        pytest.param([("correct horse battery", ANN)], id="spaced"),
        pytest.param([(TOKEN_A + "\n", ANN)], id="line-end"),
        pytest.param([(TOKEN_A, ANN), (TOKEN_A, BEN)], id="twice"),
        pytest.param([(TOKEN_A, ANN), (TOKEN_A, ANN)], id="twice-for-one"),
    ],
)
def test_a_bad_token_is_refused_by_its_caller_and_never_shown(entries: list[tuple[str, Caller]]) -> None:
    with pytest.raises(ConfigError) as caught:
        TokenTable(entries)
    assert "ann" in caught.value.what
    assert all(not token or token not in str(caught.value) for token, _ in entries)


def test_a_table_shows_no_token() -> None:
    table = TokenTable([(TOKEN_A, ANN)])
    assert TOKEN_A not in f"{table!r} {table}"
    assert TOKEN_A not in str([getattr(table, slot) for slot in table.__slots__])
