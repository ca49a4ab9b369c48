"""A process of its own that searches the catalog of `searched.py` and prints what Ann sees.

    python -m tests.flow.searched_child LARGE_INDEX OTHER_INDEX LEARNED

Args:
    LARGE_INDEX: file of the large catalog's index. OTHER_INDEX: file of an index of other tools, to bring up to date.
    LEARNED: what was learned from use.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.flow.searched import CALIBRATION, KNOWN, Setup, in_order, large, seen
from toolcrib.retrieval.dense import bundled_embedder
from toolcrib.retrieval.index import Index
from toolcrib.retrieval.learning import Learned


def main(large_file: Path, other_file: Path, learned_file: Path) -> None:
    model, tools = bundled_embedder(), in_order(KNOWN)
    setup = Setup(calibration=CALIBRATION, learned=Learned.read(learned_file))
    built = Index.build(tools, embedder=model)
    updated = Index.update_file(other_file, tools=tools, embedder=model)
    loaded = Index.load(large_file, tools=in_order(large()), embedder=model)
    told = {"built": seen(built, setup), "updated": seen(updated, setup), "large": seen(loaded, setup)}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(*(Path(name) for name in sys.argv[1:4]))
