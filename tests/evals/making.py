"""Small sets and runs for tests of the harness."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolcrib.evals.folders import read_folder
from toolcrib.evals.places import Place, place_of_folder
from toolcrib.evals.run import run
from toolcrib.evals.summary import Measured

TOOLS = (
    ("shop.issue_refund", "Return money to a customer for an order."),
    ("shop.get_order", "Look up one order by its number."),
    ("mail.send_message", "Send an e-mail message to somebody."),
    ("mail.list_folders", "List the folders of a mailbox."),
    ("sky.get_forecast", "Weather forecast for a city and a day."),
    ("sky.get_tides", "High and low water for a harbour."),
)


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_set(
    folder: Path,
    *,
    queries: Sequence[Mapping[str, Any]],
    labels: Sequence[tuple[str, str, int]],
    tools: Sequence[tuple[str, str]] = TOOLS,
) -> Path:
    """A labelled set in a folder. `labels`: (query id, tool id, capability)."""
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(
        folder / "tools.jsonl",
        [
            {"tool_id": tool_id, "server": tool_id.split(".")[0], "name": tool_id.split(".")[1], "description": words}
            for tool_id, words in tools
        ],
    )
    write_lines(folder / "queries.jsonl", queries)
    write_lines(folder / "qrels.jsonl", [{"query_id": q, "tool_id": t, "capability": c} for q, t, c in labels])
    return folder


def shop_set(folder: Path) -> Path:
    """Three tasks that tools fit, one of them compound, and two that none fits, one among its own candidates."""
    return write_set(
        folder,
        queries=[
            {"query_id": "refund", "query": "return money to a customer", "split": "single"},
            {"query_id": "tides", "query": "high and low water for a harbour", "split": "single"},
            {"query_id": "both", "query": "weather forecast for a city, and send an e-mail message", "split": "multi"},
            {"query_id": "none", "query": "knit a scarf", "split": "none", "expect_none": True},
            {
                "query_id": "narrow",
                "query": "return money to a customer for an order",
                "split": "none",
                "expect_none": True,
                "candidate_tool_ids": ["sky.get_tides", "mail.list_folders"],
            },
        ],
        labels=[
            ("refund", "shop.issue_refund", 0),
            ("tides", "sky.get_tides", 0),
            ("both", "sky.get_forecast", 0),
            ("both", "mail.send_message", 1),
        ],
    )


def measured(place: Place, **more: Any) -> Measured:
    """A run of one place."""
    return Measured(results=run(place), corpora={place.name: place.corpus}, **more)


def shop_place(folder: Path) -> Place:
    return place_of_folder(read_folder(shop_set(folder)))
