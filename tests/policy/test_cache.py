"""Remembered eligibilities: bounded, keyed by all they depend on, never a stale fault."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from toolcrib.policy.cache import EligibilityCache, EligibilityKey
from toolcrib.policy.engine import PolicyEngine
from toolcrib.types import Channel, Eligibility

from .making import PERMIT_ALL, a_caller, a_tool, eligible

KEY = EligibilityKey(
    snapshot_version="s", policy_version="p", fingerprint="f", channel=Channel.CLI, unknown_risk="allow"
)


def _eligibility() -> Eligibility:
    return eligible(PolicyEngine.from_text(PERMIT_ALL), a_caller(), [a_tool()])


def _never() -> Eligibility:
    raise AssertionError("computed although it was kept")


def test_an_equal_key_is_answered_without_computing() -> None:
    cache = EligibilityCache()
    first = cache.get_or_compute(KEY, _eligibility)
    assert cache.get_or_compute(replace(KEY), _never) is first


@pytest.mark.parametrize(
    "change",
    [
        {"snapshot_version": "s2"},
        {"policy_version": "p2"},
        {"fingerprint": "f2"},
        {"channel": Channel.HTTP},
        {"unknown_risk": "needs_approval"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_any_change_of_what_it_depends_on_computes_anew(change: dict[str, str]) -> None:
    cache = EligibilityCache()
    first, second = _eligibility(), _eligibility()
    cache.get_or_compute(KEY, lambda: first)
    assert cache.get_or_compute(replace(KEY, **change), lambda: second) is second  # type: ignore[arg-type]


def test_the_least_recently_used_entry_goes_first() -> None:
    cache = EligibilityCache(max_entries=2)
    one, two, three = (replace(KEY, fingerprint=name) for name in ("1", "2", "3"))
    kept = cache.get_or_compute(one, _eligibility)
    cache.get_or_compute(two, _eligibility)
    cache.get_or_compute(one, _never)
    cache.get_or_compute(three, _eligibility)
    assert len(cache) == 2
    assert cache.get_or_compute(one, _never) is kept
    with pytest.raises(AssertionError):
        cache.get_or_compute(two, _never)


def test_a_fault_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = EligibilityCache()
    engine = PolicyEngine.from_text(PERMIT_ALL)
    with monkeypatch.context() as broken:
        broken.setattr("cedarpy.is_authorized_batch", None)
        assert not cache.get_or_compute(KEY, lambda: eligible(engine, a_caller(), [a_tool()])).permitted.any()
    assert cache.get_or_compute(KEY, lambda: eligible(engine, a_caller(), [a_tool()])).permitted.all()


def test_a_cleared_cache_computes_anew() -> None:
    cache = EligibilityCache()
    cache.get_or_compute(KEY, _eligibility)
    cache.clear()
    assert len(cache) == 0


def test_threads_share_it_within_its_bound() -> None:
    cache = EligibilityCache(max_entries=8)
    value = _eligibility()

    def work(offset: int) -> None:
        for number in range(500):
            cache.get_or_compute(replace(KEY, fingerprint=str((number * offset) % 32)), lambda: value)

    threads = [threading.Thread(target=work, args=(offset,)) for offset in (1, 3, 5, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 8


def test_a_cache_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="max_entries"):
        EligibilityCache(max_entries=0)
