"""What the papers tell newcomers to send and make is taken: a request by hand, a client, a key set for trying."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.docs.test_examples import ROOT, blocks
from tests.gateway.carriers import served
from tests.gateway.fakes import FakeCrib, tool
from toolcrib.identity.issuers import TokenIssuer
from toolcrib.identity.jwks import FileKeys
from toolcrib.identity.jwt import caller_of_token
from toolcrib.marks import file_mark
from toolcrib.types import Caller

PAGES = ("docs/identity.md", "docs/gateway.md")
ADDRESS = "http://127.0.0.1:8765/mcp"


def crib() -> FakeCrib:
    made = FakeCrib()
    made.put(tool("freight.shipment_get", preload=True))
    return made


@pytest.mark.parametrize("page", PAGES)
async def test_the_request_by_hand_lists_the_tools(page: str) -> None:
    (command,) = [block for block in blocks(page, "sh") if block.startswith("curl")]
    words = shlex.split(command.replace("$TOOLCRIB_KEY", "ada-token"))
    assert words[:3] == ["curl", "-s", ADDRESS]
    headers = dict(words[n + 1].split(": ", 1) for n, word in enumerate(words) if word == "-H")
    async with served(crib()) as (url, _), httpx2.AsyncClient() as http:
        answer = await http.post(url, content=words[words.index("-d") + 1], headers=headers)
    assert answer.status_code == 200
    assert "find_tools" in [listed["name"] for listed in answer.json()["result"]["tools"]]


async def test_the_client_of_the_gateway_page_lists_the_tools() -> None:
    (code,) = blocks("docs/gateway.md", "python")
    async with served(crib()) as (url, _):
        assert ADDRESS in code
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code.replace(ADDRESS, url), env={"TOOLCRIB_KEY": "ada-token"}, stdout=subprocess.PIPE
        )
        out, _err = await child.communicate()
    assert child.returncode == 0 and "'find_tools'" in out.decode()


def test_the_configurations_of_clients_are_json_with_the_header() -> None:
    (entry,) = [json.loads(block) for block in blocks("docs/gateway.md", "json")]
    assert entry["mcpServers"]["toolcrib"]["headers"]["Authorization"].startswith("Bearer tck_")
    for page in ("docs/gateway.md", "docs/quickstart.md"):
        assert re.search(r"claude mcp add --transport http .* --header ", (ROOT / page).read_text("utf-8"))


def test_the_key_set_for_trying_checks_the_token_that_comes_with_it(tmp_path: Path) -> None:
    (code,) = blocks("docs/identity.md", "python")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    (told,) = [block for block in blocks("docs/identity.md", "toml") if "[[identity.jwt]]" in block]
    issuer, audience = (re.search(rf'^{name} = \[?"([^"]+)"', told, re.MULTILINE)[1] for name in ("issuer", "audience"))  # type: ignore[index]
    row = TokenIssuer(
        issuer=issuer, audience=(audience,), keys=FileKeys(tmp_path / "keys.json", mark=file_mark), claims={}
    )
    assert row.keys.fault() is None
    found = asyncio.run(caller_of_token(done.stdout.strip(), [row], agents=(), environment="", region=""))
    assert isinstance(found, Caller) and found.subject == "ann"
