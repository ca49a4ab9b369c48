"""Run the benchmarks and print what the README quotes.

    python benchmarks/run.py [--data DATA]

Without data: speed over a made-up catalog, and whether time tells a hidden tool from none. With a folder of public data
sets: also context saved over real servers, and recall.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import context
import eligibility
import lock
import speed
import timing

HERE = Path(__file__).parent


def main() -> None:
    """Print sections to standard output; what lacks its data says so."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    data = parser.parse_args().data
    print(f"date {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {platform.machine()}")
    print("\n# speed over 10,000 made-up tools (benchmarks/speed.py)")
    print(json.dumps(speed.measure(10_000), indent=2))
    print("\n# eligibility beside plain evaluation per tool (benchmarks/eligibility.py)", flush=True)
    print(json.dumps(eligibility.measure(eligibility.SIZES), indent=2))
    print("\n# time of not_available: a hidden tool against no tool (benchmarks/timing.py)")
    print(json.dumps(timing.measure(2_000, 10_000), indent=2))
    print("\n# lock check over 4,000 tools against reading their lists (benchmarks/lock.py)", flush=True)
    print(json.dumps(lock.measure(4_000, None if data is None else data / "real_servers"), indent=2))
    if data is None:
        print("\nNOT MEASURED: context saved, recall, token estimate: they need public data (make bench DATA=folder)")
        return
    print("\n# context over real servers (benchmarks/context.py)")
    print(json.dumps(context.measure(data / "real_servers"), indent=2))
    print("\n# recall on labelled sets (benchmarks/retrieval.py)", flush=True)
    subprocess.run([sys.executable, str(HERE / "retrieval.py"), str(data)], check=True)


if __name__ == "__main__":
    main()
