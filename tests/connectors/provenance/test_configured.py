"""What a configuration says now, beside what ran when the server was listed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from toolcrib.connectors.provenance.configured import is_pinned, reconfigured
from toolcrib.connectors.provenance.npm import npx_directory
from toolcrib.connectors.provenance.observed import observe
from toolcrib.types import SecretRef, ServerSpec, Transport

from .making import npm_package, write

SCRIPT = ServerSpec(
    server_id="x",
    transport=Transport.STDIO,
    command=("python3", "server.py", "--data=./data", "--pin", "hunter2-value"),
    env={"PIN": SecretRef("env:PIN"), "MODE": "a"},
)
NPX = ServerSpec(server_id="x", transport=Transport.STDIO, command=("npx", "-y", "@s/server", "--x"))
REMOTE = ServerSpec(server_id="x", transport=Transport.HTTP, url="https://tools.example.com/mcp?key=abc")


async def before(spec: ServerSpec, root: Path):
    write(root / "server.py", "print()\n")
    npm_package(npx_directory(["@s/server"], env={"HOME": str(root)}), "@s/server")
    return await observe(spec, env={"PATH": "/usr/bin:/bin", "HOME": str(root)}, root=root)


@pytest.mark.parametrize("spec", [SCRIPT, NPX, REMOTE], ids=["script", "npx", "remote"])
async def test_an_unchanged_configuration_says_what_was_found(tmp_path, spec):
    assert reconfigured(spec, await before(spec, tmp_path), root=tmp_path) == ()


@pytest.mark.parametrize(
    ("spec", "now", "fields"),
    [
        (SCRIPT, {"command": ("npx", "-y", "evil", *SCRIPT.command[2:])}, ("launcher",)),
        (SCRIPT, {"command": (*SCRIPT.command, "--to", "evil.example")}, ("arguments",)),
        (SCRIPT, {"env": {**SCRIPT.env, "HTTPS_PROXY": "http://evil.example"}}, ("env",)),
        (NPX, {"command": ("npx", "-y", "@s/servers", "--x")}, ("package",)),
        (NPX, {"command": ("node", "x.js")}, ("launcher", "arguments")),
        (NPX, {"transport": Transport.HTTP, "command": (), "url": "https://evil.example"}, ("address",)),
        (REMOTE, {"url": "https://evil.example/mcp"}, ("address",)),
        (REMOTE, {"transport": Transport.STDIO, "url": "", "command": ("server",)}, ("launcher",)),
    ],
)
async def test_each_other_word_of_the_configuration_is_told(tmp_path, spec, now, fields):
    assert reconfigured(replace(spec, **now), await before(spec, tmp_path), root=tmp_path) == fields


def test_whether_a_version_is_named_is_read_off_the_command_line():
    pinned = replace(NPX, command=("npx", "-y", "@s/server@1.2.3"))
    assert [is_pinned(spec) for spec in (NPX, pinned, REMOTE)] == [False, True, None]
