"""Over 118 published servers' lists: nothing lost, nothing altered, one bad tool costs only itself.

The lists lie beside the project (`../shared/data/real_servers`), not in it; without them this says so, loudly.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolcrib.crib import Crib
from toolcrib.server.surface import SurfaceKind, public_definition, surface_of
from toolcrib.types import Channel, Outcome

LISTS = Path(__file__).parents[3] / "shared" / "data" / "real_servers"
pytestmark = pytest.mark.shared


def listed() -> dict[str, list[Any]]:
    """Server id -> its tools as published."""
    files = sorted(LISTS.glob("*.tools.json"))
    return {f.name.removesuffix(".tools.json"): json.loads(f.read_text(encoding="utf-8"))["tools"] for f in files}


@pytest.fixture(scope="module")
def crib(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crib]:
    if not LISTS.is_dir():
        pytest.skip(f"NOT TESTED: the published lists are not there ({LISTS}); everything else was")
    folder = tmp_path_factory.mktemp("real")
    rows = ['[crib]\nname = "real"\n']
    rows += [
        f'[[servers]]\nid = "{server_id}"\ntransport = "file"\npath = {json.dumps(f"{LISTS / server_id}.tools.json")}\n'
        for server_id in listed()
    ]
    (folder / "toolcrib.toml").write_text("\n".join(rows), encoding="utf-8")
    one = Crib.open(folder)
    report = asyncio.run(one.refresh())
    assert report.failed == {}
    one.approve(None, reviewer="tests")
    yield one
    asyncio.run(one.aclose())


def test_every_tool_is_served_as_published_or_withheld_with_its_reason(crib: Crib) -> None:
    snapshot = crib.snapshot()
    served = {t.tool_id: json.dumps(t.definition) for t in snapshot.tools}
    held = {w.tool_id: w.reason for w in snapshot.withheld}
    published = {f"{s}.{raw['name']}": json.dumps(raw) for s, tools in listed().items() for raw in tools}
    assert served.keys() | held.keys() == published.keys()
    assert served.keys() & held.keys() == set()
    assert [i for i, text in served.items() if published[i] != text] == [], "not a byte of a definition is altered"
    assert all(held.values())
    assert {i.split(".")[0] for i in held} == {"modelcontextprotocol__server-gitlab"}
    assert len(held) == 9


def test_the_whole_listing_passes_unaltered_but_for_the_name(crib: Crib) -> None:
    view = crib.view(crib.local_caller, Channel.STDIO)
    surface = surface_of(view, SurfaceKind.ALL)
    names = [d["name"] for d in surface.listing]
    assert len(set(names)) == len(names) == len(view.tools)
    for tool, shown in zip(view.tools, surface.listing, strict=True):
        assert {**shown, "name": tool.name} == tool.definition
        assert shown == public_definition(tool)


def test_a_request_finds_its_tool_among_all_of_them(crib: Crib) -> None:
    offer = crib.select("create a pull request")
    assert offer.outcome is Outcome.SELECTED
    assert offer.tools[0].tool.name == "create_pull_request"
    assert crib.select("pause the nightly backup schedule").outcome in (Outcome.SELECTED, Outcome.NO_MATCH)
