"""What lint finds and what it raises in vain, what disguises and hiding places cost it, and how fast it reads.

    python benchmarks/lint.py DATA [--json FILE]

`DATA/poisoned_open/poisoned.jsonl` holds attacks of other people; the model is trained on none of them.
`DATA/real_servers` holds lists of live servers, `mcp_toucan`, `mcp_mcpm`, `mcp_docker` and `mcp_github` published ones.
Disguises and places are applied to the same attacks; a text that a disguise alone gives away does not count as found.
"""

from __future__ import annotations

import argparse
import html
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolcrib.review.findings import Level
from toolcrib.review.lint import lint, lint_catalog, surroundings
from toolcrib.review.rules import RULES
from toolcrib.review.scoring import Row, judged, read_rows, scores
from toolcrib.types import ListedTool

PUBLISHED = ("mcp_toucan", "mcp_mcpm", "mcp_docker", "mcp_github")
LOOKALIKES = str.maketrans("aeopcxyi", "аеорсхуі")
HIDDEN = tuple(rule.id for rule in RULES.values() if rule.family in ("disguise", "invisible characters"))
"""What tells that a text is disguised, and not what it says."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--json", type=Path, dest="out")
    options = parser.parse_args()
    told = {
        "attacks": scores(judged(read_rows(options.data / "poisoned_open" / "poisoned.jsonl"))),
        "published": {name: alarms(entries) for name, entries in catalogs(options.data).items()},
        "moved and disguised": robustness(read_rows(options.data / "poisoned_open" / "poisoned.jsonl")),
    }
    print(json.dumps(told, indent=1))
    if options.out:
        options.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def catalogs(data: Path) -> dict[str, list[ListedTool]]:
    """Live servers and published sets, each a catalog."""
    found = {"real_servers": live(data / "real_servers")}
    return found | {name: published(data / name / "tools.jsonl") for name in PUBLISHED}


def live(folder: Path) -> list[ListedTool]:
    return [
        ListedTool(server_id=file.name.removesuffix(".tools.json"), name=tool["name"], definition=tool, digest=f"{n}")
        for file in sorted(folder.glob("*.json"))
        for n, tool in enumerate(json.loads(file.read_text(encoding="utf-8"))["tools"])
    ]


def published(file: Path) -> list[ListedTool]:
    found = []
    for n, line in enumerate(file.read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        made = {"name": row["name"], "description": row["description"], "inputSchema": row["input_schema"]}
        found.append(ListedTool(server_id=row["server"], name=row["name"], definition=made, digest=f"{n}"))
    return found


def alarms(entries: list[ListedTool]) -> dict[str, Any]:
    """False alarms at both levels, and the time of reading all of it."""
    began = time.process_time()
    found = lint_catalog(entries).values()
    took = time.process_time() - began
    raised = {
        level.value: sum(any(f.level.order >= level.order for f in findings) for findings in found)
        for level in (Level.REVIEW, Level.BLOCK)
    }
    shares = {f"{level}_share": round(n / len(entries), 4) for level, n in raised.items()}
    return {"n": len(entries), **raised, **shares, "cpu_ms_per_tool": round(1_000 * took / len(entries), 2)}


def robustness(rows: tuple[Row, ...]) -> dict[str, Any]:
    """Share of attacks found at level review, as they are and with their description moved or disguised."""
    return {name: round(found_share(rows, change), 4) for name, change in {**PLACES, **DISGUISES}.items()}


def found_share(rows: tuple[Row, ...], change: Callable[[dict[str, Any], str], dict[str, Any]]) -> float:
    changed = [
        replace(row.entry, definition=change(dict(row.entry.definition), row.entry.definition["description"]))
        for row in rows
    ]
    found = 0
    for source in {row.source for row in rows}:
        mine = [entry for entry, row in zip(changed, rows, strict=True) if row.source == source]
        around = surroundings(mine)
        for entry in mine:
            findings = lint(entry.definition, around=around[entry.server_id])
            found += any(f.level is not Level.INFO and f.rule not in HIDDEN for f in findings)
    return found / len(rows)


def in_property(made: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    properties = {**(made.get("inputSchema") or {}).get("properties", {}), "options": schema}
    return {**made, "description": "", "inputSchema": {"type": "object", "properties": properties}}


PLACES: dict[str, Callable[[dict[str, Any], str], dict[str, Any]]] = {
    "as it is": lambda made, _: made,
    "in a parameter's description": lambda made, text: in_property(made, {"type": "string", "description": text}),
    "in the title": lambda made, text: {**made, "description": "", "title": text},
    "in a default": lambda made, text: in_property(made, {"type": "string", "default": text}),
    "in an enum": lambda made, text: in_property(made, {"type": "string", "enum": ["a", text]}),
    "in a nested schema": lambda made, text: in_property(
        made, {"type": "array", "items": {"type": "object", "properties": {"x": {"description": text}}}}
    ),
}
DISGUISES: dict[str, Callable[[dict[str, Any], str], dict[str, Any]]] = {
    "homoglyphs": lambda made, text: {**made, "description": text.translate(LOOKALIKES)},
    "zero-width characters": lambda made, text: {**made, "description": "\u200b".join(text)},
    "full-width letters": lambda made, text: {
        **made, "description": "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)
    },
    "HTML entities": lambda made, text: {**made, "description": "".join(f"&#{ord(c)};" for c in html.unescape(text))},
    "padding": lambda made, text: {**made, "description": "Helps with the task." + "\n" * 200 + " " * 400 + text},
}  # fmt: skip


if __name__ == "__main__":
    main()
