"""All tools of the desk, one file per domain. `ALL` is in the order of the names; a name occurs once."""

from __future__ import annotations

from freight_desk.catalog import administration, billing, customers, customs, fleet, network, papers, sales, shipments
from freight_desk.catalog import warehouse as warehouse_tools
from freight_desk.tool import Tool

DOMAINS = (administration, billing, customs, customers, fleet, network, papers, sales, shipments, warehouse_tools)
ALL: tuple[Tool, ...] = tuple(sorted((tool for domain in DOMAINS for tool in domain.TOOLS), key=lambda t: t.name))
BY_NAME = {tool.name: tool for tool in ALL}
