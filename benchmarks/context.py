"""How much context is saved: every tool of real servers listed, against the gateway's surface and a typical selection.

python benchmarks/context.py DATA/real_servers
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path

from toolcrib.crib import Crib
from toolcrib.selection.tokens import estimate_tokens
from toolcrib.server.surface import SurfaceKind, surface_of
from toolcrib.types import Channel, JsonObject

TASKS = (
    "create a pull request",
    "pause the nightly backup schedule",
    "what time is it in Oslo",
    "list the pods of a namespace",
    "send an email to the team",
    "search the web for news",
    "read a file",
    "add a row to a spreadsheet",
    "create an issue and assign it",
    "delete a storage bucket",
    "run a SQL query",
    "take a screenshot of a page",
)


def measure(folder: Path) -> dict[str, object]:
    """Tokens and milliseconds over every `*.tools.json` in the folder, all approved, for the local operator."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        rows = ['[crib]\nname = "bench"\n']
        for number, file in enumerate(sorted(folder.resolve().glob("*.tools.json"))):
            server_id = file.name.removesuffix(".tools.json")[:60].replace(".", "-")
            rows.append(
                f'[[servers]]\nid = "{server_id or number}"\ntransport = "file"\npath = {json.dumps(str(file))}\n'
            )
        (root / "toolcrib.toml").write_text("\n".join(rows), encoding="utf-8")
        return asyncio.run(_measure(root))


async def _measure(root: Path) -> dict[str, object]:
    async with Crib.open(root) as crib:
        report = await crib.refresh()
        crib.approve(None, reviewer="benchmark")
        crib.pipeline()
        view = crib.view(crib.local_caller, Channel.CLI)
        every = sum(estimate_tokens(_read_by_a_model(tool.definition)) for tool in view.tools)
        surface = sum(estimate_tokens(d) for d in surface_of(view, SurfaceKind.SEARCH).listing)
        tokens, spent = [], []
        for task in TASKS:
            start = time.perf_counter()
            offer = crib.select(task)
            spent.append((time.perf_counter() - start) * 1e3)
            tokens.append(offer.selection.tokens)
        withheld = len(crib.snapshot().withheld)
    typical = statistics.median(tokens)
    return {
        "servers": report.n_servers,
        "tools_listed": report.n_tools,
        "tools_served": len(view.tools),
        "tools_withheld": withheld,
        "tokens_listing_everything": every,
        "tokens_surface": surface,
        "tokens_typical_selection": typical,
        "saved_percent": round(100 * (1 - (surface + typical) / every), 2),
        "select_ms_median": round(statistics.median(spent), 1),
    }


def _read_by_a_model(definition: JsonObject) -> JsonObject:
    """What clients put before a model of each listed tool; a selection is counted whole, which is more."""
    return {key: definition[key] for key in ("name", "description", "inputSchema") if key in definition}


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    print(json.dumps(measure(parser.parse_args().folder), indent=2))


if __name__ == "__main__":
    main()
