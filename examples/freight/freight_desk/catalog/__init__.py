"""All tools of the desk, one file per domain. `ALL` is in the order of the names; a name occurs once."""

from __future__ import annotations

from freight_desk.catalog import (
    administration,
    billing,
    customers,
    customs,
    fleet,
    network,
    papers,
    sales,
    second_release,
    shipments,
)
from freight_desk.catalog import warehouse as warehouse_tools
from freight_desk.tool import Tool

DOMAINS = (administration, billing, customs, customers, fleet, network, papers, sales, shipments, warehouse_tools)
ALL: tuple[Tool, ...] = tuple(sorted((tool for domain in DOMAINS for tool in domain.TOOLS), key=lambda t: t.name))


def release(number: str) -> tuple[Tool, ...]:
    """The tools of release "1" or "2", in the order of the names."""
    changed = {"1": (), "2": second_release.CHANGED}[number]
    current = {tool.name: tool for tool in (*ALL, *changed)}
    return tuple(current[name] for name in sorted(current))
