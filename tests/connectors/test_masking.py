"""Secrets in foreign text."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from toolcrib.connectors.masking import masker_for
from toolcrib.types import SecretRef, ServerSpec, Transport

KEY = '-----BEGIN-----\nabcdef/+ "q"\n-----END-----\n'


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("hunter2", "password hunter2 refused"),
        ("Bearer hunter2", "token hunter2 refused"),
        ("hunter2\n", "password hunter2 refused"),
        (KEY, f"key {KEY}"),
        (KEY, 'line abcdef/+ "q"'),
        (KEY, json.dumps({"key": KEY})),
        ("a/b+c?d=e", "GET /?token=" + quote("a/b+c?d=e", safe="")),
    ],
    ids=["plain", "token of a header", "trailing newline", "key", "line of a key", "json", "url"],
)
def test_no_form_of_a_secret_is_left(secret, text):
    spec = ServerSpec(server_id="s", transport=Transport.STDIO, env={"K": SecretRef("env:K")})
    masked = masker_for(spec, env={"K": secret}, headers={})(text)
    for left in ("hunter2", "abcdef", "a/b+c", "a%2Fb"):
        assert left not in masked


def test_plain_settings_stay_readable():
    spec = ServerSpec(server_id="s", transport=Transport.STDIO, env={"LEVEL": "debug-all"})
    assert masker_for(spec, env={"LEVEL": "debug-all"}, headers={})("level debug-all") == "level debug-all"


def test_literal_header_is_a_secret():
    spec = ServerSpec(server_id="s", transport=Transport.HTTP, headers={"X-Key": "literal-key"})
    assert masker_for(spec, env={}, headers={"X-Key": "literal-key"})("bad literal-key") == "bad ***"


def test_printing_a_masker_shows_no_secret():
    spec = ServerSpec(server_id="s", transport=Transport.STDIO, env={"K": SecretRef("env:K")})
    assert "hunter2" not in repr(masker_for(spec, env={"K": "hunter2"}, headers={}))
