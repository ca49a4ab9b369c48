"""A script and the files beside it that it takes in: what a change of its behaviour would show in.

Invariants
1. Only files that the script names itself, directly or through another such file, in its own directory or below it (for
   JavaScript also above it): a directory full of other scripts changes nothing.
2. What is imported from installed packages is not followed.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

from toolcrib.connectors.provenance.content import MAX_FILES, NotTold

_PYTHON = (".py", ".pyw", "")
_JAVASCRIPT = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")
_TAKEN_IN = re.compile(r"""(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)["'](\.{1,2}/[^"'\n]+)["']""")
_MAX_SOURCE_BYTES = 4 * 1024 * 1024


def with_imports(script: Path, *, launcher: str) -> dict[str, Path]:
    """The script and what it takes in, by path from the script's directory.

    Args:
        launcher: the interpreter; only Python and JavaScript are read.
    """
    root = script.parent
    found = {script.name: script}
    waiting = [script]
    while waiting:
        path = waiting.pop()
        for other in _imports(path, root, launcher):
            name = os.path.relpath(other, root).replace(os.sep, "/")
            if name not in found:
                found[name] = other
                waiting.append(other)
        if len(found) > MAX_FILES:
            raise NotTold("it takes in too many files")
    return found


def _imports(path: Path, root: Path, launcher: str) -> Iterator[Path]:
    try:
        if path.stat().st_size > _MAX_SOURCE_BYTES:
            return
        text = path.read_text("utf-8", "replace")
    except OSError:
        return
    if path.suffix in _JAVASCRIPT:
        yield from _javascript(text, path)
    elif path.suffix in _PYTHON and launcher not in ("sh", "node"):
        yield from _python(text, path, root)


def _javascript(text: str, path: Path) -> Iterator[Path]:
    for told in _TAKEN_IN.findall(text):
        target = path.parent / told
        stem = target.with_suffix("") if target.suffix in _JAVASCRIPT else target
        ends = [stem.with_name(stem.name + end) for end in (*_JAVASCRIPT, ".json")]
        yield from _first_file([target, *ends, *(target / f"index{end}" for end in _JAVASCRIPT)])


def _first_file(paths: list[Path]) -> Iterator[Path]:
    yield from [Path(os.path.normpath(path)) for path in paths if path.is_file()][:1]


def _python(text: str, path: Path, root: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _modules(root, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = path.parents[node.level - 1] if 0 < node.level <= len(path.parents) else root
            inside = base == root or root in base.parents
            names = node.module.split(".") if node.module else []
            for alias in node.names if inside else ():
                yield from _modules(base, [*names, alias.name])


def _modules(base: Path, names: list[str]) -> Iterator[Path]:
    """Files of `a`, `a.b`, `a.b.c` under a directory; a package wins over a module, as in Python."""
    for name in names:
        yield from _first_file([base / name / "__init__.py", base / f"{name}.py"])
        base = base / name
