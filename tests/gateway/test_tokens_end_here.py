"""What a caller shows the gateway goes no further: not the token, not a cookie, to no server behind it.

A real server over HTTP stands behind the `toolcrib` command and writes down all that reaches it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.connectors.conftest import serving as backend
from tests.connectors.servers.polite import make_server
from tests.identity.signing import AUDIENCE, ISSUER, RSA_A, key_file, public_jwk, signed

from .asking import ask
from .carriers import ERAS
from .test_end_to_end import TOKEN, run, serving

COOKIE = "session=cookie-of-the-caller"
CALLER = '{subject = "ann"}'


class Recorder:
    """An application, and every byte of every request that came to it."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.seen: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def heard() -> Any:
            message = await receive()
            self.seen.append(repr(message.get("body", "")))
            return message

        self.seen.append(repr([scope.get("headers"), scope.get("query_string"), scope.get("path")]))
        await self.app(scope, heard, send)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("kind", ["token", "jwt"])
async def test_neither_token_nor_cookie_of_a_caller_reaches_a_server(tmp_path: Path, mode: str, kind: str) -> None:
    keys = key_file(tmp_path, public_jwk(RSA_A, "a"))
    identity = {
        "token": f'[[identity.tokens]]\ntoken = "env:E2E_TOKEN"\ncaller = {CALLER}\n',
        "jwt": (
            f'[[identity.jwt]]\nissuer = "{ISSUER}"\naudience = ["{AUDIENCE}"]\nkeys_file = {json.dumps(str(keys))}\n'
            '[identity.jwt.claims]\nsubject = "sub"\n'
        ),
    }[kind]
    shown = TOKEN if kind == "token" else signed(sub="ann")
    recorder = Recorder(make_server().streamable_http_app(json_response=True))
    async with backend(recorder) as behind:
        (tmp_path / "toolcrib.toml").write_text(
            f'[[servers]]\nid = "far"\ntransport = "http"\nurl = "{behind}"\n'
            f'[[tools]]\nmatch = "far.*"\nrisk = "read"\n{identity}',
            encoding="utf-8",
        )
        for words in (["refresh"], ["approve", "--all"]):
            done = await anyio.to_thread.run_sync(run, tmp_path, *words)
            assert done.returncode == 0, done.stderr
        recorder.seen.clear()
        headers = {"Authorization": f"Bearer {shown}", "Cookie": COOKIE, "X-Tenant": "spoofed-tenant"}
        async with (
            serving(tmp_path) as url,
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as ann,
        ):
            result = await ask(ann, "call_tool", {"name": "far.echo", "arguments": {"text": "hi"}})
    assert result["structuredContent"] == {"got": {"text": "hi"}}
    reached = "".join(recorder.seen)
    assert "tools/call" in reached, "the call did reach the server"
    for secret in (shown, shown.split(".")[-1], COOKIE, "spoofed-tenant", "authorization"):
        assert secret not in reached
