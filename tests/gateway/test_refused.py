"""What the operator's log says of refused requests over HTTP, and what `serve` does not start with."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

from tests.identity.signing import RSA_A, key_set, public_jwk, public_pem
from toolcrib.cli.serve import _Door
from toolcrib.crib import Crib
from toolcrib.errors import ConfigError
from toolcrib.server.challenge import ProtectedResource
from toolcrib.server.serve import serve_http
from toolcrib.settings.model import IdentitySettings
from toolcrib.types import Presented

from .carriers import served
from .fakes import FakeCrib
from .test_door import ROWS, DoorCrib, door
from .test_http import LIST, bearer

JWT = """
[[identity.jwt]]
issuer = "https://issuer.example"
audience = ["toolcrib"]
keys_file = "keys.json"
"""
FILES = {
    "missing": None,
    "pem": public_pem(RSA_A),
    "no-set": b"{}",
    "empty-set": b'{"keys": []}',
    "no-key-for-signatures": key_set(public_jwk(RSA_A, "a", use="enc")),
}


async def test_each_request_refused_at_the_door_is_a_line_without_its_token(caplog: pytest.LogCaptureFixture) -> None:
    strict = ProtectedResource(required_scopes=("crib.use",))
    async with served(FakeCrib(), describe=lambda: strict) as (url, _), httpx2.AsyncClient() as http:
        twice = [("Authorization", "Bearer ada-token"), ("Authorization", "Bearer bob-token")]
        for headers in (
            bearer("ada"),
            twice,
            {"Host": "evil.example"},
            {**bearer("ada"), "Origin": "https://a.example"},
        ):
            await http.post(url, json=LIST, headers=headers)
    refused = [message for message in caplog.messages if "was refused" in message]
    assert [line.split(":")[0] for line in refused] == [
        f"a request from 127.0.0.1 was refused ({status})" for status in (403, 401, 421, 403)
    ]
    for line, word in zip(refused, ("crib.use", "several", "'evil.example'", "'https://a.example'"), strict=True):
        assert word in line
    assert "--allow-host" in refused[2] and "-token" not in caplog.text


async def test_a_request_without_a_credential_is_logged_where_one_is_needed(caplog: pytest.LogCaptureFixture) -> None:
    near = Presented(peer="127.0.0.1")
    await door(DoorCrib()).caller(near)
    assert caplog.messages == []
    needs = door(DoorCrib(identity=ROWS["token"]))
    for _ in range(3):
        assert await needs.caller(near) is None
    assert caplog.messages == ["a request from 127.0.0.1 was refused (401): it shows no credential"]


async def test_of_what_was_shown_the_crib_alone_says_why_it_is_not_taken(caplog: pytest.LogCaptureFixture) -> None:
    needs = door(DoorCrib(identity=IdentitySettings(tokens=ROWS["token"].tokens, proxies=ROWS["proxy"].proxies)))
    assert await needs.caller(Presented(authorization="Bearer junk")) is None
    assert await needs.caller(Presented(headers={"x-cert": "CN=ann"})) is None
    assert caplog.messages == []


@pytest.mark.parametrize("file", FILES)
def test_a_key_file_that_holds_no_key_is_told_before_anybody_is_served(tmp_path: Path, file: str) -> None:
    (tmp_path / "toolcrib.toml").write_text(f'[crib]\nname = "test"\n{JWT}', encoding="utf-8")
    path = tmp_path / "keys.json"
    if (body := FILES[file]) is not None:
        path.write_bytes(body)
    with Crib.open(tmp_path) as crib:
        one = _Door(crib=crib, as_file=None, alone=True, open_to_anybody=False)
        with pytest.raises(ConfigError) as caught:
            one.check()
        assert caught.value.where == str(path) and "docs/identity.md" in caught.value.hint
        path.write_bytes(key_set(public_jwk(RSA_A, "a")))
        one.check()


async def test_an_address_that_others_reach_is_refused_with_the_option_that_allows_it() -> None:
    with pytest.raises(ConfigError) as caught:
        await asyncio.wait_for(serve_http(FakeCrib(), resolve_caller=door(DoorCrib()).caller, host="0.0.0.0"), 5)
    assert "--allow-host NAME" in caught.value.hint
