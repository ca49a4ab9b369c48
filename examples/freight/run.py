"""Six cases of a careful operator, told: `python examples/freight/run.py`.

Runs on copies of this folder, so each case starts fresh and nothing is left behind. The cases are in `six_cases.py`.
"""

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

from six_cases import CASES

from toolcrib import Crib

HERE = Path(__file__).resolve().parent
FRESH = shutil.ignore_patterns(".toolcrib", "toolcrib.lock", "freight-state.json", "__pycache__")
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))  # finds `python3`


async def prepared(root: Path) -> str:
    """All that the server lists is taken in and approved, and the index is built."""
    async with Crib.open(root) as crib:
        report = await crib.refresh()
        if report.failed:
            sys.exit(f"the server lists nothing: {report.failed}")
        crib.approve(None, reviewer="you", reason="our own server")
        return f"{len(crib.pipeline().snapshot.tools)} of {report.n_tools} tools are in service."


async def story(root: Path) -> None:
    print(await prepared(root))
    for number, (title, case) in enumerate(CASES, start=1):
        print(f"\n{number}. {title}\n   {case.__doc__}")
        for step in await case(Path(shutil.copytree(root, root.with_name(f"case-{number}")))):
            print("\n".join(step.lines()))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(story(Path(shutil.copytree(HERE, Path(folder) / "freight", ignore=FRESH))))
