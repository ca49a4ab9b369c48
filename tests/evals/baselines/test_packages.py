"""The real packages, where they are installed: in the interpreter that TOOLCRIB_PEERS_PYTHON names, or in this one."""

from __future__ import annotations

import pytest

from tests.evals.baselines.making import tool
from toolcrib.evals.baselines import available, unavailable

TOOLS = (
    tool("shop.issue_refund", "issue_refund", "Return money to a customer for an order.", {"order": "its number"}),
    tool("sky.get_forecast", "get_forecast", "Weather forecast for a city and a day.", {"city": "its name"}),
    tool("sky.get_tides", "get_tides", "High and low water for a harbour."),
    tool("sea.get_tides", "get_tides", "Tidal currents for a strait."),
    tool("sea.twin", "get_tides", "Tidal currents for a strait."),
)


@pytest.mark.parametrize("name", ["fastmcp", "pydantic-ai", "langgraph-bigtool"])
def test_a_package_finds_by_its_own_search(name: str) -> None:
    if absent := unavailable([name]):
        pytest.skip(absent[name])
    (peer,) = available([name])
    broken = tool("odd.list", "odd", "Odd.", ["amount"])
    opened = peer.open([*TOOLS, broken])
    assert list(opened.search("weather forecast for my city", 1)) == ["sky.get_forecast"]
    assert list(opened.search("tidal currents in the strait", 1)) == ["sea.get_tides"]
    assert len(opened.search("low water harbour tides forecast refund", 3)) == 3
    assert peer.overhead_tokens > 20
    assert ("odd.list for one" in peer.about) is (name == "fastmcp")
    opened.close()  # type: ignore[attr-defined]
