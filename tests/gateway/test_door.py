"""Whom `toolcrib serve --http` lets in, by the configuration and the store as they are when the request comes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from toolcrib.cli.serve import _Door, _knows_callers
from toolcrib.errors import ConfigError, PolicyError
from toolcrib.settings.model import IdentitySettings, JwtSettings, ProxySettings, TokenSettings
from toolcrib.types import ApiKey, Caller, Presented, SecretRef

BOT = Caller(subject="bot")
OPERATOR = Caller(subject="operator")
NOTHING = Presented()
TOKEN = Presented(authorization="Bearer bot-token")
JUNK = [Presented(authorization=text) for text in ("Bearer junk", "Basic junk", "")]

KEY = ApiKey(key_id="k1", secret_digest="0", caller={"subject": "bot"}, created_at="", created_by="", revoked_at="2026")
SECRET = SecretRef("env:X")
JWT = JwtSettings(issuer="https://login.example", audience=("crib",), keys_url="", keys_file="keys.json")
PROXY = ProxySettings(
    name="edge", addresses=("10.0.0.1",), header="x-cert", secret=SECRET, secret_header="x-secret", clients=()
)
ROWS: dict[str, Any] = {
    "token": IdentitySettings(tokens=(TokenSettings(token=SECRET, caller={"subject": "bot"}),)),
    "jwt": IdentitySettings(jwt=(JWT,)),
    "proxy": IdentitySettings(proxies=(PROXY,)),
}


@dataclass
class DoorCrib:
    """The part of a crib that a door asks. `broken`: the configuration cannot be read."""

    identity: IdentitySettings = field(default_factory=IdentitySettings)
    keys: tuple[ApiKey, ...] = ()
    broken: bool = False
    local_caller: Caller = OPERATOR

    @property
    def settings(self) -> Any:
        return SimpleNamespace(identity=self.identity)

    @property
    def store(self) -> Any:
        return SimpleNamespace(api_keys=lambda: self.keys)

    def pipeline(self) -> None:
        if self.broken:
            raise PolicyError("broken")

    def unreadable_tokens(self) -> tuple[ConfigError, ...]:
        return ()

    async def identify(self, presented: Presented) -> Caller | None:
        return BOT if presented == TOKEN and _knows_callers(self) else None


def door(crib: DoorCrib, *, alone: bool = True, open_to_anybody: bool | None = None) -> _Door:
    opened = not _knows_callers(crib) if open_to_anybody is None else open_to_anybody
    return _Door(crib=crib, as_file=None, alone=alone, open_to_anybody=opened)


def credentials() -> list[Any]:
    return [pytest.param(DoorCrib(identity=row), id=kind) for kind, row in ROWS.items()] + [
        pytest.param(DoorCrib(keys=(KEY,)), id="ended-key")
    ]


async def test_without_any_credential_whoever_shows_none_on_this_machine_is_the_operator():
    near, far = door(DoorCrib()), door(DoorCrib(), alone=False)
    assert await near.caller(NOTHING) == OPERATOR
    assert await far.caller(NOTHING) is None
    assert [await near.caller(shown) for shown in (TOKEN, *JUNK)] == [None] * 4


@pytest.mark.parametrize("crib", credentials())
async def test_where_anybody_has_a_credential_one_is_needed(crib):
    one = door(crib)
    assert not one.open_to_anybody
    assert await one.caller(TOKEN) == BOT
    assert [await one.caller(shown) for shown in (NOTHING, *JUNK)] == [None] * 4


@pytest.mark.parametrize("crib", credentials())
async def test_taking_the_last_credential_away_opens_the_door_to_nobody(crib):
    one = door(replace(crib))
    one.crib.identity, one.crib.keys = IdentitySettings(), ()
    assert [await one.caller(shown) for shown in (NOTHING, TOKEN, *JUNK)] == [None] * 5


@pytest.mark.parametrize("crib", credentials())
async def test_a_credential_given_out_later_shuts_an_open_door(crib):
    one = door(DoorCrib())
    assert await one.caller(NOTHING) == OPERATOR
    one.crib.identity, one.crib.keys = crib.identity, crib.keys
    assert await one.caller(NOTHING) is None


async def test_while_the_configuration_cannot_be_read_nobody_comes_in():
    with pytest.raises(PolicyError):
        await door(DoorCrib(broken=True)).caller(NOTHING)


@pytest.mark.parametrize("crib", credentials())
def test_an_address_that_others_reach_is_served_only_where_callers_are_known(crib):
    door(crib, alone=False).check()
    with pytest.raises(ConfigError):
        door(DoorCrib(), alone=False).check()
