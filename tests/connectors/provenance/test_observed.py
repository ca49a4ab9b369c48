"""What runs behind a server, seen from its connector: real programs, packages made by hand."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import pytest
import uvicorn
from cryptography.hazmat.primitives import serialization

from toolcrib.connectors.files import FileConnector
from toolcrib.connectors.functions import FunctionServer
from toolcrib.connectors.mcp import McpConnector
from toolcrib.connectors.observing import Observing
from toolcrib.connectors.provenance import _linux_processes, observed
from toolcrib.connectors.provenance.npm import npx_directory
from toolcrib.connectors.provenance.observed import observe
from toolcrib.types import Provenance, ProvenanceKind, SecretRef, ServerListing, ServerSpec, Transport

from ..conftest import SERVERS, http_connector, serving
from ..servers.polite import make_server
from .certificates import certificate, key, pem
from .making import distribution, npm_package, site, venv, write

RUDE = (SERVERS / "rude.py").read_text(encoding="utf-8")
SCRIPT = json.dumps({"pages": [[None, '{"tools":[{"name":"greet"}]}']]})
GREETER = {"greeter/__init__.py": "def main():\n    import greeter.__main__\n", "greeter/__main__.py": RUDE}


def install(place: Path, *, version: str = "1.0.0", comment: str = "") -> Path:
    """A virtual environment with a server as an installed package; every version lists the same definitions."""
    venv(place)
    distribution(place, {**GREETER, "greeter/sending.py": comment}, version=version, script="greeter")
    return place


async def listed(root: Path, *command: str, env: dict[str, str] | None = None, **spec) -> ServerListing:
    server = ServerSpec(server_id="greeter", transport=Transport.STDIO, command=(*command, SCRIPT), **spec)
    connector = McpConnector(server, env=env or {}, headers={}, root=root)
    assert isinstance(connector, Observing)
    try:
        listing = await connector.list_tools()
        assert await connector.observed() is listing.provenance
        return listing
    finally:
        await connector.aclose()


@pytest.mark.parametrize(
    ("launcher", "command"),
    [("python", ("bin/python", "-m", "greeter")), ("", ("bin/greeter",))],
    ids=["module", "script"],
)
async def test_another_version_under_the_same_definitions_is_another_provenance(tmp_path, launcher, command):
    old, same, new = tmp_path / "old", tmp_path / "elsewhere" / "old", tmp_path / "new"
    install(old)
    install(same)
    install(new, version="1.1.0", comment="import smtplib  # what 1.0.0 did not do\n")
    first, again, later = [await listed(place, str(place / command[0]), *command[1:]) for place in (old, same, new)]
    assert first.tools == again.tools == later.tools
    assert (first.provenance.launcher, first.provenance.kind) == (launcher, ProvenanceKind.PYTHON)
    assert first.provenance.compared == again.provenance.compared
    differing = {k for k, v in later.provenance.compared.items() if first.provenance.compared[k] != v}
    assert differing == {"version", "integrity"}


async def test_a_package_edited_in_place_is_another_provenance(tmp_path):
    install(tmp_path)
    before = await listed(tmp_path, "bin/python", "-m", "greeter")
    write(site(tmp_path) / "greeter/sending.py", "import smtplib\n")
    after = await listed(tmp_path, "bin/python", "-m", "greeter")
    assert before.provenance.version == after.provenance.version
    assert before.provenance.integrity != after.provenance.integrity


@pytest.mark.skipif(not _linux_processes.SUPPORTED, reason="what a launcher started is told by /proc")
@pytest.mark.parametrize("name", ["uvx", "pipx"])
async def test_behind_a_launcher_is_what_it_started(tmp_path, name):
    install(tmp_path / "cache")
    launcher = tmp_path / "bin" / name
    write(
        launcher, f'#!/bin/sh\nwhile [ "$1" != greeter ]; do shift; done; shift\n"{tmp_path}/cache/bin/greeter" "$@"\n'
    )
    launcher.chmod(0o755)
    found = (await listed(tmp_path, str(launcher), *(["run"] if name == "pipx" else []), "greeter")).provenance
    assert (found.kind, found.launcher, found.package, found.version) == (
        ProvenanceKind.PYTHON,
        name,
        "greeter",
        "1.0.0",
    )
    assert not found.pinned
    assert json.loads(found.advice)[-1] == "greeter==1.0.0"


async def test_a_script_is_its_file_and_what_it_takes_in(tmp_path):
    write(tmp_path / "srv/server.py", RUDE + "\nimport helper\n")
    write(tmp_path / "srv/helper.py", "")
    before = (await listed(tmp_path, sys.executable, "srv/server.py")).provenance
    assert (before.kind, before.package, before.launcher) == (ProvenanceKind.FILE, "srv/server.py", "python")
    write(tmp_path / "srv/helper.py", "1")
    assert (await listed(tmp_path, sys.executable, "srv/server.py")).provenance.integrity != before.integrity


@pytest.mark.skipif(not _linux_processes.SUPPORTED, reason="what a shell line started is told by /proc")
async def test_a_shell_line_is_told_by_what_it_started(tmp_path):
    install(tmp_path)
    spec = ServerSpec(
        server_id="x",
        transport=Transport.STDIO,
        command=("sh", "-c", f"true && bin/python -m greeter '{SCRIPT}'; true"),
    )
    connector = McpConnector(spec, env={}, headers={}, root=tmp_path)
    found = (await connector.list_tools()).provenance
    await connector.aclose()
    assert (found.kind, found.launcher, found.package) == (ProvenanceKind.PYTHON, "sh", "greeter")
    assert found.arguments == (spec.command[2],)


async def test_what_uv_runs_is_the_script_and_not_the_framework_that_runs_it(tmp_path):
    write(tmp_path / "server.py", "")
    found = await told(tmp_path, "uv", "run", "--with", "mcp", "mcp", "run", "server.py")
    assert (found.kind, found.package, found.pinned, found.advice) == (ProvenanceKind.FILE, "server.py", False, "")


async def test_a_server_that_goes_to_another_directory_is_still_its_script(tmp_path):
    write(tmp_path / "server.py", "import os\nos.chdir('/')\n" + RUDE)
    assert (await listed(tmp_path, sys.executable, "server.py")).provenance.package == "server.py"


async def test_a_project_of_uv_is_told_by_its_environment(tmp_path):
    install(tmp_path / "project/.venv")
    for command in (("greeter",), ("-m", "greeter"), ("python", "-m", "greeter")):
        found = await told(tmp_path, "uv", "--directory", "project", "run", *command)
        assert (found.kind, found.launcher, found.package, found.pinned) == (
            ProvenanceKind.PYTHON,
            "uv",
            "greeter",
            True,
        )


async def test_secrets_and_places_stay_out(tmp_path):
    write(tmp_path / "server.py", RUDE)
    spec = ServerSpec(
        server_id="x",
        transport=Transport.STDIO,
        command=(sys.executable, "server.py", SCRIPT, f"--data={tmp_path}/data", "--pin", "hunter2-value"),
        env={"PIN": SecretRef("env:PIN"), "MODE": "a"},
    )
    connector = McpConnector(spec, env={"PIN": "hunter2-value", "MODE": "a"}, headers={}, root=tmp_path)
    found = (await connector.list_tools()).provenance
    await connector.aclose()
    assert found.arguments[1:] == ("--data=./data", "--pin", "***")
    assert found.env == ("MODE", "PIN")
    assert "hunter2" not in repr(found)
    assert str(tmp_path) not in repr(found)


# --- without a process: what disk alone tells ---


async def told(root: Path, *command: str, env: dict[str, str] | None = None) -> Provenance:
    spec = ServerSpec(server_id="x", transport=Transport.STDIO, command=command)
    return await observe(spec, env={"PATH": "/usr/bin:/bin", "HOME": str(root), **(env or {})}, root=root)


async def test_npx_is_told_by_its_cache_and_says_the_pinned_line(tmp_path):
    npm_package(npx_directory(["@s/server"], env={"HOME": str(tmp_path)}), "@s/server")
    found = await told(tmp_path, "npx", "-y", "@s/server", "--x")
    assert (found.kind, found.package, found.version, found.arguments) == (
        ProvenanceKind.NPM,
        "@s/server",
        "1.2.3",
        ("--x",),
    )
    assert (found.pinned, json.loads(found.advice)) == (False, ["npx", "-y", "@s/server@1.2.3"])


async def test_npx_of_an_installed_package_fetches_nothing(tmp_path):
    npm_package(tmp_path, "server")
    found = await told(tmp_path, "npx", "server")
    assert (found.kind, found.pinned, found.advice) == (ProvenanceKind.NPM, True, "")


async def test_a_command_in_node_modules_and_a_script_of_it_are_the_package(tmp_path):
    command = npm_package(tmp_path, "server", text="#!/usr/bin/env node\n1;\n")
    command.resolve().chmod(0o755)
    direct = await told(tmp_path, "node_modules/.bin/server")
    script = await told(tmp_path, "node", "node_modules/server/dist/index.js")
    assert (direct.kind, direct.launcher, script.launcher) == (ProvenanceKind.NPM, "", "node")
    assert direct.integrity == script.integrity


async def test_uvx_is_told_by_its_cache_unless_that_holds_two_versions(tmp_path):
    install(tmp_path / ".cache/uv/archive-v0/one")
    found = await told(tmp_path, "uvx", "--from", "greeter[x]", "greeter")
    assert (found.version, json.loads(found.advice)) == ("1.0.0", ["uvx", "--from", "greeter[x]==1.0.0", "greeter"])
    install(tmp_path / ".cache/uv/archive-v0/two", version="1.1.0")
    assert (await told(tmp_path, "uvx", "greeter")).kind is ProvenanceKind.UNKNOWN
    assert (await told(tmp_path, "uvx", "greeter==1.1.0")).version == "1.1.0"


async def test_a_program_is_its_digest_and_a_script_for_the_shell_says_so(tmp_path):
    write(tmp_path / "server", "\x7fELF and more")
    found = await told(tmp_path, "./server", "a")
    digest = "sha256:" + hashlib.sha256(b"\x7fELF and more").hexdigest()
    assert (found.kind, found.package, found.integrity) == (ProvenanceKind.EXECUTABLE, "server", digest)
    write(tmp_path / "start", "#!/bin/sh\nexec something\n")
    assert "shell script" in (await told(tmp_path, "./start")).note


async def test_a_module_in_the_working_directory_comes_before_an_installed_one(tmp_path):
    install(tmp_path)
    write(tmp_path / "greeter/__main__.py", "")
    found = await told(tmp_path, "bin/python", "-m", "greeter")
    assert (found.kind, found.package) == (ProvenanceKind.FILE, "greeter")


@pytest.mark.parametrize(
    "command",
    [
        ("absent-program",),
        ("npx", "absent"),
        ("uvx", "absent"),
        ("uv", "run", "absent"),
        ("bunx", "absent"),
        ("python3", "-m", "absent_module"),
        ("node", "absent.js"),
        ("sh", "-c", "a && b"),
        ("pipx",),
        (),
    ],
    ids=" ".join,
)
async def test_what_cannot_be_told_is_unknown_and_says_why(tmp_path, command):
    found = await told(tmp_path, *command)
    assert found.kind is ProvenanceKind.UNKNOWN
    assert found.note
    assert str(tmp_path) not in found.note


async def test_trouble_costs_no_listing(tmp_path, monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(observed, "_found", broken)
    write(tmp_path / "server.py", RUDE)
    listing = await listed(tmp_path, sys.executable, "server.py")
    assert len(listing.tools) == 1
    assert (listing.provenance.kind, "RuntimeError" in listing.provenance.note) == (ProvenanceKind.UNKNOWN, True)


# --- other kinds of servers ---


async def test_a_remote_server_is_its_address_and_the_key_of_its_connection(tmp_path, monkeypatch):
    ours = key()
    chain = tmp_path / "server.pem"
    chain.write_bytes(certificate(ours, "127.0.0.1", encoding=serialization.Encoding.PEM) + pem(ours))
    monkeypatch.setenv("SSL_CERT_FILE", str(chain))
    config = uvicorn.Config
    monkeypatch.setattr(uvicorn, "Config", lambda *a, **k: config(*a, **k, ssl_certfile=str(chain)))
    async with serving(make_server().streamable_http_app(json_response=True)) as url:
        connector = http_connector(url.replace("http:", "https:") + "?key=hunter2")
        found = (await connector.list_tools()).provenance
        await connector.aclose()
    public = ours.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert (found.kind, found.origin) == (ProvenanceKind.REMOTE, url.replace("http:", "https:"))
    assert found.tls_key == "sha256:" + hashlib.sha256(public).hexdigest()


async def test_a_file_is_its_name_so_that_one_more_tool_blocks_no_other(tmp_path):
    write(tmp_path / "a/tools.json", '{"tools": []}')
    spec = ServerSpec(server_id="x", transport=Transport.FILE, path="a/tools.json")
    connector = FileConnector(spec, path=tmp_path / "a/tools.json")
    before = (await connector.list_tools()).provenance
    write(tmp_path / "a/tools.json", '{"tools": [{"name": "b"}]}')
    assert before.compared == {"kind": "file", "package": "a/tools.json"}
    assert (await connector.observed()).compared == before.compared


async def test_functions_are_of_their_packages():
    server = FunctionServer("x", {"dump": ({}, json.dumps), "here": ({}, install)})
    found = (await server.list_tools()).provenance
    assert (found.kind, found.package) == (ProvenanceKind.CODE, "json, tests")


def test_a_process_tells_its_command_line_and_its_descendants():
    family = _linux_processes.family(os.getpid())
    if _linux_processes.SUPPORTED:
        assert family[0].pid == os.getpid()
        assert Path(family[0].exe).exists()
        assert _linux_processes.family(2**30) == ()
    else:
        assert family == ()
