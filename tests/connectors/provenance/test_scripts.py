"""A script and what it takes in from beside it."""

from __future__ import annotations

from toolcrib.connectors.provenance.scripts import with_imports

from .making import write


def test_a_python_script_takes_in_what_it_names_and_nothing_else(tmp_path):
    write(tmp_path / "server.py", "import json, tools\nfrom pack.inner import thing\nimport absent")
    write(tmp_path / "tools.py", "from helpers import x")
    write(tmp_path / "helpers.py", "import tools")
    write(tmp_path / "pack/__init__.py", "from . import beside\nfrom .. import outside")
    write(tmp_path / "pack/inner.py", "")
    write(tmp_path / "pack/beside.py", "")
    write(tmp_path / "unrelated.py", "")
    assert sorted(with_imports(tmp_path / "server.py", launcher="python")) == [
        "helpers.py",
        "pack/__init__.py",
        "pack/beside.py",
        "pack/inner.py",
        "server.py",
        "tools.py",
    ]


def test_a_javascript_file_takes_in_relative_modules(tmp_path):
    write(tmp_path / "dist/server.js", "import a from './a.js'\nrequire(\"../shared\");import('./b')\nimport 'express'")
    write(tmp_path / "dist/a.ts", "export * from './deep/index.js'")
    write(tmp_path / "dist/deep/index.js", "")
    write(tmp_path / "dist/b.mjs", "")
    write(tmp_path / "shared/index.cjs", "require('./data.json')")
    write(tmp_path / "shared/data.json", "{}")
    assert sorted(with_imports(tmp_path / "dist/server.js", launcher="node")) == [
        "../shared/data.json",
        "../shared/index.cjs",
        "a.ts",
        "b.mjs",
        "deep/index.js",
        "server.js",
    ]


def test_a_script_that_cannot_be_parsed_counts_alone(tmp_path):
    write(tmp_path / "server.py", "import tools\nthis is no python")
    write(tmp_path / "tools.py", "")
    assert list(with_imports(tmp_path / "server.py", launcher="python")) == ["server.py"]
