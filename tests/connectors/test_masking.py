"""Secrets in foreign text."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from starlette.responses import JSONResponse

from toolcrib.connectors.masking import masker_for
from toolcrib.connectors.mcp import McpConnector
from toolcrib.types import Code, SecretRef, ServerSpec, Transport

from .conftest import serving
from .test_http import Scripted

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


# --- results: what a server hands back ---

TOKEN = "sk-live/9f8e+7d6c=ü\"&'x"


def result_masker(secret=TOKEN, *, header=False, reference="env:SHOP_TOKEN"):
    if header:
        spec = ServerSpec(server_id="s", transport=Transport.HTTP, headers={"Authorization": SecretRef(reference)})
        return masker_for(spec, env={}, headers={"Authorization": secret}).result
    spec = ServerSpec(server_id="s", transport=Transport.STDIO, env={"K": SecretRef(reference)})
    return masker_for(spec, env={"K": secret}, headers={}).result


def text(value):
    return {"content": [{"type": "text", "text": value}]}


ENCODINGS = {
    "plain": TOKEN,
    "json": json.dumps({"token": TOKEN}),
    "json, not ascii": json.dumps({"token": TOKEN}, ensure_ascii=False),
    "json in json": json.dumps({"body": json.dumps({"token": TOKEN})}),
    "json with escaped slashes": json.dumps({"token": TOKEN}).replace("/", "\\/"),
    "percent": "https://a.example/?token=" + quote(TOKEN, safe=""),
    "percent, lower case": "https://a.example/?token=" + quote(TOKEN, safe="").replace("%2F", "%2f").replace(
        "%2B", "%2b").replace("%3D", "%3d").replace("%C3%BC", "%c3%bc"),
    "path": "https://a.example/" + quote(TOKEN),
    "form": "token=" + quote_plus(TOKEN),
    "html": html.escape(TOKEN),
    "hex": TOKEN.encode().hex(),
    "HEX": TOKEN.encode().hex().upper(),
    "base64": base64.b64encode(TOKEN.encode()).decode(),
    "base64url": base64.urlsafe_b64encode(TOKEN.encode()).decode(),
    "base64 behind 1 byte": base64.b64encode(b":" + TOKEN.encode() + b" and more").decode(),
    "base64 behind 2 bytes": base64.b64encode(b"u:" + TOKEN.encode()).decode(),
    "base64url behind 3 bytes": base64.urlsafe_b64encode(b"me:" + TOKEN.encode() + b"!").decode(),
}  # fmt: skip


@pytest.mark.parametrize("echoed", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize(
    "place",
    [
        text,
        lambda value: {"content": [], "structuredContent": {"rows": [{"deep": [value]}]}},
        lambda value: {"content": [], "structuredContent": {value: 1}},
        lambda value: {"content": [{"type": "resource", "resource": {"uri": "file:///" + value, "text": value}}]},
        lambda value: {"content": [{"type": "resource_link", "uri": "x", "name": value, "title": value}]},
        lambda value: {**text(value), "isError": True, "_meta": {"debug": value}},
    ],
    ids=["text", "structured", "name", "resource", "link", "error"],
)
def test_an_injected_secret_does_not_come_back_in_a_result(place, echoed):
    raw = place(echoed)
    masked = result_masker()(raw)
    shown = json.dumps(masked, ensure_ascii=False)
    assert "***" in shown
    assert echoed not in shown
    assert json.dumps(echoed, ensure_ascii=False)[1:-1] not in shown
    assert "9f8e" not in shown


@pytest.mark.parametrize("key", ["blob", "data"])
@pytest.mark.parametrize("before", [b"", b"\x00\xff", b"\x89PNG "], ids=len)
@pytest.mark.parametrize("wrap", [str, lambda coded: "\n".join(coded[i : i + 20] for i in range(0, len(coded), 20)),
                                  lambda coded: coded.rstrip("=")], ids=["plain", "lines", "unpadded"])  # fmt: skip
def test_encoded_bytes_are_masked_inside_and_stay_base64(key, before, wrap):
    coded = wrap(base64.b64encode(before + TOKEN.encode() + b"\x00tail").decode())
    raw = {"content": [{"type": "image", key: coded, "mimeType": "image/png"}]}
    masked = result_masker()(raw)["content"][0][key]
    assert base64.b64decode(masked, validate=True) == before + b"***" + b"\x00tail"


def test_a_result_without_a_secret_is_the_very_same_object():
    image = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "x"}
    structured = {"n": 1, "on": True, "none": None, "f": 1.5, "list": [[1], {}], "data": "words"}
    raw = {"content": [{"type": "text", "text": "fine"}, image], "structuredContent": structured}
    assert result_masker()(raw) is raw


def test_nothing_is_changed_where_no_secret_was_given():
    spec = ServerSpec(server_id="s", transport=Transport.STDIO, env={"LEVEL": "debug-all"})
    raw = text("level debug-all")
    assert masker_for(spec, env={"LEVEL": "debug-all"}, headers={}).result(raw) is raw


def test_a_number_that_is_the_secret_is_masked_as_text_and_no_other_number_is_put_there():
    structured = {"pin": 123456789, "as_float": 123456789.0, "n": 12345678, "f": 123456789.5, "more": 1234567890}
    masked = result_masker("123456789")({"content": [], "structuredContent": structured})["structuredContent"]
    assert masked == {**structured, "pin": "***", "as_float": "***"}


def test_names_that_become_the_same_keep_all_values():
    coded = base64.b64encode(TOKEN.encode()).decode()
    structured = {TOKEN: 1, "***": 2, coded: 3, "***2": 4, "a" + TOKEN: 5, "b": 6, TOKEN + TOKEN: 7}
    masked = result_masker()({"content": [], "structuredContent": structured})["structuredContent"]
    assert list(masked.values()) == list(structured.values())
    assert (masked["***"], masked["***2"], masked["a***"], masked["b"], masked["******"]) == (2, 4, 5, 6, 7)
    assert sorted(name for name, value in masked.items() if value in (1, 3)) == ["***3", "***4"]


def test_many_names_that_become_the_same_take_no_more_than_one_look_each():
    structured = {TOKEN * n: n for n in range(1, 40)} | {f"{TOKEN}{'*' * n}": -n for n in range(1, 40)}
    masked = result_masker()({"content": [], "structuredContent": structured})["structuredContent"]
    assert list(masked.values()) == list(structured.values())


@pytest.mark.parametrize(
    ("secret", "header", "leaked"),
    [
        ("Bearer tok-12345678", True, "tok-12345678"),
        ("Bearer tok-12345678", True, "Authorization: Bearer tok-12345678"),
        ("token ghp_12345678", True, "ghp_12345678"),
        ("Basic " + base64.b64encode(b"ann:pass-word-1").decode(), True, "pass-word-1"),
        ("Basic " + base64.b64encode(b"ann:pass-word-1").decode(), True, "ann:pass-word-1"),
        ("tok-12345678\n", False, "tok-12345678"),
        ("-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END KEY-----", False, "MIIEvQIBADANBgkqhkiG9w0B"),
        ('{"type": "service", "private_key": "-----BEGIN-----\\nMIIEvQIBADANBgkqhkiG9w0B\\n-----END-----"}', False,
         "MIIEvQIBADANBgkqhkiG9w0B"),
    ],
    ids=["token", "header", "scheme", "password", "pair", "line-end", "key", "json"],
)  # fmt: skip
def test_a_part_of_a_secret_that_is_one_by_itself_is_masked(secret, header, leaked):
    masked = result_masker(secret, header=header)(text(f"it was {leaked}."))
    assert leaked.split()[-1] not in masked["content"][0]["text"]


@pytest.mark.parametrize(
    ("secret", "header", "ordinary"),
    [
        ("Bearer tok-12345678", True, "Bearer tokens and other Bearer words"),
        ("correct horse battery staple", False, "a correct battery for a horse"),
        ("8080", False, "port 8080"),
        ("-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END KEY-----", False, "-----BEGIN KEY-----"),
    ],
    ids=["scheme", "passphrase", "short", "heading"],
)
def test_words_of_a_secret_stay_readable_in_results(secret, header, ordinary):
    raw = text(ordinary)
    assert result_masker(secret, header=header)(raw) is raw


def test_what_every_process_knows_is_no_secret_in_a_result():
    raw = text("/home/ann/report.txt")
    assert result_masker("/home/ann", reference="env:HOME")(raw) is raw
    assert result_masker("/home/ann", reference="env:SHOP_TOKEN")(raw) != raw


def test_a_value_from_a_callers_vault_is_a_secret_whatever_configuration_calls_it():
    spec = ServerSpec(
        server_id="s", transport=Transport.HTTP, headers={"X-Me": "caller:shop"}, env={"K": "caller:shop"}
    )
    masker = masker_for(spec, env={"K": "vault-env-1"}, headers={"X-Me": "vault-head-1"})
    masked = masker.result(text("vault-env-1 vault-head-1"))
    assert masked == text("*** ***")
    assert masker("vault-env-1 vault-head-1") == "*** ***"


def test_a_literal_header_is_a_secret_in_results_only_by_its_name():
    headers = {"X-Api-Key": "literal-key", "X-Region": "eu-central-1"}
    spec = ServerSpec(server_id="s", transport=Transport.HTTP, headers=headers)
    masked = masker_for(spec, env={}, headers=headers).result(text("literal-key in eu-central-1"))
    assert masked == text("*** in eu-central-1")


def test_a_result_too_deep_to_be_read_through_is_no_result():
    deep = []
    for _ in range(5_000):
        deep = [deep]
    assert result_masker()({"content": [], "structuredContent": deep}) == {}


async def test_a_real_server_that_echoes_its_token_shows_it_to_nobody(tmp_path):
    async def echo(body):
        if body["params"]["name"] == "fail":
            error = {"code": -32603, "message": f"bad token {SENT}"}
            return JSONResponse({"jsonrpc": "2.0", "id": body["id"], "error": error})
        block = {"type": "text", "text": f"called with {SENT}"}
        result = {"content": [block], "structuredContent": {"token": SENT}, "resultType": "complete"}
        if body["params"]["name"] == "refuse":
            result = {**result, "isError": True}
        return JSONResponse({"jsonrpc": "2.0", "id": body["id"], "result": result})

    SENT = "tok-12345678"
    scripted = Scripted(tools_call=echo)
    async with serving(scripted.app) as url:
        spec = ServerSpec(
            server_id="web", transport=Transport.HTTP, url=url, headers={"Authorization": SecretRef("env:T")}
        )
        connector = McpConnector(spec, env={}, headers={"Authorization": f"Bearer {SENT}"}, root=tmp_path)
        given = [await connector.call(name, {}, timeout_s=10) for name in ("echo", "refuse", "fail")]
        await connector.aclose()
    assert scripted.of("tools/call")[0][1]["authorization"] == f"Bearer {SENT}"
    assert [r.code for r in given] == [Code.OK, Code.TOOL_ERROR, Code.TOOL_ERROR]
    assert given[0].structured == {"token": "***"}
    assert all("***" in repr(r) for r in given)
    assert not any(SENT in repr(r) for r in given)
