"""Check the papers: generated pages are fresh, links lead somewhere, README is short."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from pages import DOCS, generated

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def broken_links() -> list[str]:
    """`file: target` for every relative link that leads nowhere."""
    pages = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
        *ROOT.glob("benchmarks/*.md"),
    ]
    return [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if "://" not in target and not target.startswith("mailto:") and not (page.parent / target).exists()
    ]


def main() -> int:
    """0 when the papers are in order, 1 with what is not."""
    wrong = [f"broken link in {link}" for link in broken_links()]
    for name, text in generated().items():
        page = DOCS / name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            wrong.append(f"docs/{name} is not what the program says: run `make docs`")
    for name, most in (("README.md", 150), ("ARCHITECTURE.md", 300)):
        lines = len((ROOT / name).read_text(encoding="utf-8").splitlines())
        if lines > most:
            wrong.append(f"{name} has {lines} lines, at most {most}")
    for line in wrong:
        print(line)
    print("docs: in order" if not wrong else f"docs: {len(wrong)} things to mend")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
