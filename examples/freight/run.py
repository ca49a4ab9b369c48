"""Six cases of a careful operator, told: `python examples/freight/run.py`.

Runs on copies of this folder, so each case starts fresh and nothing is left behind. The cases are in `six_cases.py`.
"""

import asyncio
import logging
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
# Case 5 takes the server away on purpose: its steps say so, and the log's words would stand among them.
logging.getLogger("toolcrib.connectors.pool").setLevel(logging.ERROR)


async def prepared(root: Path) -> str:
    """All that the server lists is taken in and approved, and the index is built."""
    async with Crib.open(root) as crib:
        report = await crib.refresh()
        if report.failed:
            sys.exit(f"the server lists nothing: {report.failed}")
        crib.approve(None, reviewer="you", reason="our own server")
        return f"{len(crib.pipeline().snapshot.tools)} of {report.n_tools} tools are in service."


async def story(root: Path) -> int:
    """Tells the cases; how many steps came to another code than they should."""
    print(await prepared(root))
    n_wrong = 0
    for number, (title, case, expected) in enumerate(CASES, start=1):
        print(f"\n{number}. {title}\n   {case.__doc__}")
        steps = await case(Path(shutil.copytree(root, root.with_name(f"case-{number}"))))
        for step, code in zip(steps, expected, strict=True):
            print("\n".join(step.lines()))
            if step.code != code:
                n_wrong += 1
                print(f"    NOT AS IT SHOULD BE: expected {code}")
    return n_wrong


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        n_wrong = asyncio.run(story(Path(shutil.copytree(HERE, Path(folder) / "freight", ignore=FRESH))))
    if n_wrong:
        sys.exit(f"\n{n_wrong} steps are not as they should be.")
    print(f"\n{len(CASES)} cases: each as it should be.")
