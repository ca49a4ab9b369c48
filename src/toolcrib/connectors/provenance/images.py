"""A container image: its digest, from the command line or from the container engine that has it.

Invariants
1. The engine is asked for an image it has; nothing is pulled, and no shell is in between.
2. It is asked in the server's own environment, and given up after `_ASK_S`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from toolcrib.connectors.provenance.launch import Launch, image_spec
from toolcrib.types import Provenance, ProvenanceKind

_ASK_S = 5.0


async def image(launch: Launch, *, env: Mapping[str, str]) -> Provenance:
    """What is known of the image that a `docker run` names."""
    name, tag, digest = image_spec(launch.specs[0])
    head, slash, _ = name.partition("/")
    hosted = bool(slash) and ("." in head or ":" in head or head == "localhost")
    found = Provenance(
        kind=ProvenanceKind.IMAGE,
        registry=head if hosted else "docker.io",
        package=name[len(head) + 1 :] if hosted else name,
        version=tag or ("" if digest else "latest"),
        integrity=digest,
    )
    if digest:
        return found
    told = await _asked(launch.program, launch.specs[0], env=env)
    return replace(found, note=told) if isinstance(told, str) else replace(found, integrity=_digest(told, name))


async def _asked(program: str, reference: str, *, env: Mapping[str, str]) -> dict[str, Any] | str:
    """What the engine says of the image, or why it says nothing."""
    nothing = f"{program.rpartition('/')[2]} did not tell the image's digest"
    pipe = asyncio.subprocess.PIPE
    null = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            program, "image", "inspect", reference, stdin=null, stdout=pipe, stderr=null, env=dict(env)
        )
    except OSError:
        return nothing
    try:
        async with asyncio.timeout(_ASK_S):
            answer, _ = await process.communicate()
        rows = json.loads(answer)
    except (TimeoutError, ValueError):
        return nothing
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else nothing


def _digest(told: Mapping[str, Any], name: str) -> str:
    """The registry's digest where there is one, which is the same on every machine; else the local image's id."""
    digests = [text.partition("@") for text in told.get("RepoDigests") or () if isinstance(text, str)]
    ours = [digest for repository, _, digest in digests if repository.endswith(name)]
    return next(iter(ours or [digest for _, _, digest in digests]), "") or str(told.get("Id") or "")
