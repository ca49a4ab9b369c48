"""An image's digest: from the command line, or from an engine that is a script of ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolcrib.connectors.provenance import images
from toolcrib.connectors.provenance.observed import observe
from toolcrib.types import Provenance, ProvenanceKind, ServerSpec, Transport

DIGEST = "sha256:" + "a" * 64


def engine(tmp_path: Path, script: str) -> dict[str, str]:
    """An environment in which `docker` is this shell script."""
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:/usr/bin:/bin"}


async def told(*words: str, env: dict[str, str], root: Path) -> Provenance:
    return await observe(ServerSpec(server_id="x", transport=Transport.STDIO, command=words), env=env, root=root)


async def test_a_digest_on_the_command_line_needs_no_engine(tmp_path):
    found = await told("docker", "run", "-i", f"ghcr.io/o/time:1@{DIGEST}", "a", env={"PATH": ""}, root=tmp_path)
    assert found == Provenance(
        kind=ProvenanceKind.IMAGE,
        launcher="docker",
        registry="ghcr.io",
        package="o/time",
        version="1",
        integrity=DIGEST,
        arguments=("a",),
    )


async def test_an_engine_tells_the_registrys_digest_and_the_line_to_use(tmp_path):
    row = {"Id": "sha256:local", "RepoDigests": [f"other/thing@{DIGEST[:-1]}b", f"mcp/time@{DIGEST}"]}
    env = engine(tmp_path, f"echo \"$@\" > {tmp_path}/asked; echo '{json.dumps([row])}'")
    found = await told("docker", "run", "--rm", "-i", "mcp/time", env=env, root=tmp_path)
    assert (found.registry, found.version, found.integrity, found.pinned) == ("docker.io", "latest", DIGEST, False)
    assert json.loads(found.advice) == ["docker", "run", "--rm", "-i", f"mcp/time@{DIGEST}"]
    assert (tmp_path / "asked").read_text().split() == ["image", "inspect", "mcp/time"]


@pytest.mark.parametrize(
    "script", ["exit 1", "echo []", "echo not json", "echo '[1]'"], ids=["fails", "empty", "noise", "row"]
)
async def test_an_engine_that_does_not_know_leaves_a_note(tmp_path, script):
    found = await told("docker", "run", "mcp/time", env=engine(tmp_path, script), root=tmp_path)
    assert (found.kind, found.package, found.integrity, found.advice) == (ProvenanceKind.IMAGE, "mcp/time", "", "")
    assert "did not tell" in found.note


async def test_an_engine_that_hangs_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(images, "_ASK_S", 0.05)
    found = await told("docker", "run", "mcp/time", env=engine(tmp_path, "exec sleep 60"), root=tmp_path)
    assert "did not tell" in found.note


async def test_no_engine_leaves_a_note(tmp_path):
    found = await told("docker", "run", "mcp/time", env={"PATH": str(tmp_path)}, root=tmp_path)
    assert "did not tell" in found.note
