"""From configuration to a connector."""

from __future__ import annotations

import json
import subprocess
import sys

from toolcrib.connectors.opening import open_connector
from toolcrib.types import ServerSpec, Transport

from .conftest import SERVERS


async def test_relative_path_of_a_file_begins_in_the_root(tmp_path):
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "a.json").write_text('{"tools": [{"name": "a"}]}')
    spec = ServerSpec(server_id="f", transport=Transport.FILE, path="lists/a.json")
    listing = await open_connector(spec, env={}, headers={}, root=tmp_path).list_tools()
    assert listing.tools == ({"name": "a"},)


async def test_relative_command_and_directory_begin_in_the_root(tmp_path):
    script = {"pages": [[None, '{"tools":[]}']]}
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "server").write_text(f'#!/bin/sh\nexec {sys.executable} -S {SERVERS / "rude.py"} "$1"\n')
    (tmp_path / "here" / "server").chmod(0o755)
    spec = ServerSpec(server_id="s", transport=Transport.STDIO, command=("./server", json.dumps(script)), cwd="here")
    connector = open_connector(spec, env={}, headers={}, root=tmp_path)
    assert (await connector.list_tools()).server_name == "rude"
    await connector.aclose()


def test_mcp_is_not_imported_until_a_server_needs_it():
    code = "import sys, toolcrib.connectors.opening as o; sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
