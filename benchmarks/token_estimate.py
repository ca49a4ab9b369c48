"""How far `estimate_tokens` is from real o200k counts, over files of published servers.

    python benchmarks/token_estimate.py DATA [--js-tiktoken FOLDER]

Counted are whole definitions, as `tools/list` sends them.

DATA holds `*.json` files with `{"tools": [definition, …]}`. FOLDER is one in which `npm install js-tiktoken` was run;
it carries the o200k table, and Node counts with it. Without it only the estimate and its speed are printed.

A hash of the file's name tells apart the half by which the estimate was calibrated and the half it is measured on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

from toolcrib.selection.tokens import estimate_tokens

_COUNTER = """
import {createRequire} from 'node:module'; import {pathToFileURL} from 'node:url'; import readline from 'node:readline';
const find = createRequire(process.argv[1] + '/');
const load = async (name) => import(pathToFileURL(find.resolve(name)).href);
const {Tiktoken} = await load('js-tiktoken/lite'), ranks = await load('js-tiktoken/ranks/o200k_base');
const encoder = new Tiktoken(ranks.default.default || ranks.default);
for await (const line of readline.createInterface({input: process.stdin}))
  console.log(encoder.encode(JSON.parse(line), [], []).length);
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--js-tiktoken", type=Path)
    options = parser.parse_args()
    tools = [
        (file.name, tool)
        for file in sorted(options.data.glob("*.json"))
        for tool in json.loads(file.read_text(encoding="utf-8"))["tools"]
    ]
    started = time.process_time()
    estimates = [estimate_tokens(tool) for _, tool in tools]
    spent_us = (time.process_time() - started) / len(tools) * 1e6
    print(f"{len(tools):,} tools, {sum(estimates):,} tokens estimated, {spent_us:.0f} µs a tool")
    if options.js_tiktoken:
        counts = count_o200k([tool for _, tool in tools], folder=options.js_tiktoken)
        for name, half in (("calibrated on", 0), ("measured on", 1)):
            rows = [(e, c) for (file, _), e, c in zip(tools, estimates, counts, strict=True) if half_of(file) == half]
            print(f"{name:>14}: {errors(rows)}")


def half_of(file_name: str) -> int:
    return int(hashlib.sha256(file_name.encode()).hexdigest(), 16) % 2


def count_o200k(tools: list[dict[str, Any]], *, folder: Path) -> list[int]:
    """Real counts of the same text that the estimate is made for."""
    lines = "\n".join(json.dumps(json.dumps(tool, ensure_ascii=False)) for tool in tools)
    command = ["node", "--input-type=module", "-e", _COUNTER, str(folder.resolve())]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


def errors(rows: list[tuple[int, int]]) -> str:
    """Errors in percent of the real count; a positive total is an over-count."""
    off = sorted(abs(estimate / count - 1) * 100 for estimate, count in rows)
    total = (sum(e for e, _ in rows) / sum(c for _, c in rows) - 1) * 100
    p95 = off[int(len(off) * 0.95)]
    return f"{len(rows):,} tools, median {statistics.median(off):.1f} %, p95 {p95:.1f} %, total {total:+.1f} %"


if __name__ == "__main__":
    main()
