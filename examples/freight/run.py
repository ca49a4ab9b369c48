"""Why is S-204 held? One request answered, and calls that come to nothing: `python examples/freight/run.py`.

Runs on a copy of this folder, so it starts fresh and leaves nothing behind.
"""

import asyncio
import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from toolcrib import Crib
from toolcrib.identity.callers import caller_from_file

HERE = Path(__file__).resolve().parent
REQUEST = "Why is S-204 held? Draft an internal note."
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))  # finds `python3`


async def story(root: Path) -> None:
    people = {
        name: caller_from_file(root / "callers" / f"{name}.json", environment="production", region="eu")
        for name in ("mara", "ravi")
    }
    async with Crib.open(root) as crib:
        report = await crib.refresh()
        crib.approve(None, reviewer="you", reason="our own server")
        mara, ravi = people["mara"], people["ravi"]
        print(f"Of {report.n_tools} tools, Mara may use {len(crib.tools(mara))}.")

        async def call(tool: str, caller=mara, **arguments: str) -> object:
            done = await crib.call(f"freight.{tool}", arguments, caller=caller)
            told = done.message or (done.result and done.result.structured)
            print(f"  {caller.subject} calls {tool} {arguments}\n    {done.code}: {str(told)[:150]}")
            return done.result and done.result.structured

        def select(task: str) -> None:
            names = [chosen.tool.name for chosen in crib.select(task, caller=mara).tools]
            print(f"\nMara asks: {task}\n  offered: {', '.join(names)}")

        select(REQUEST)
        await call("shipment_get", shipment_id="S-204")
        select("Which papers does customs still need for S-204?")
        missing = (await call("customs_requirements_get", shipment_id="S-204"))["n_missing"]
        await call("internal_note_draft", shipment_id="S-204", body=f"Held by customs; {missing} papers are missing.")
        print("\nWhat does not happen:")
        await call("hold_clear", hold_id="H-31", reason="the customer is in a hurry")
        await call("shipment_get", shipment_id="S-517")  # Baltic's
        revoked = replace(mara, scopes=mara.scopes - {"customs.read"})
        await call("customs_requirements_get", revoked, shipment_id="S-204")
        await call("integration_stop", ravi, integration_id="customs-checklist", reason="maintenance")
        await call("customs_checklist_get", shipment_id="S-204")
        await call("hold_get", hold_id="H-31")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(story(Path(shutil.copytree(HERE, folder, dirs_exist_ok=True))))
