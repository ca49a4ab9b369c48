"""The owner's endpoint, asked over a real socket."""

from __future__ import annotations

import logging
import socket
from urllib.parse import unquote

import pytest

from toolcrib.connectors.lookup import look_up, lookup_url_fault

from .endpoint import endpoint, response

OWNED = b'{"tenant": "acme"}'
TOKEN = "Bearer sk-very-secret-token"


async def ask(answer, *, resource_id="S-1", template="/v1/orders/{id}", timeout_s=5.0, max_bytes=1_000, headers=None):
    async with endpoint(answer if callable(answer) else lambda _asked: answer) as made:
        found = await look_up(
            made.url + template,
            resource_id=resource_id,
            headers={"authorization": TOKEN} if headers is None else headers,
            timeout_s=timeout_s,
            max_bytes=max_bytes,
        )
        return found, made.seen


async def test_the_owner_is_asked_once_with_the_operators_headers():
    found, (asked,) = await ask(response(OWNED))
    assert found == {"tenant": "acme"}
    assert (asked.method, asked.target, asked.body) == ("GET", "/v1/orders/S-1", b"")
    assert asked.headers["authorization"] == TOKEN
    assert asked.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "resource_id",
    ["a/b", "..x", "x..", "..%2", "%252e%252e", "a..b/c.d", "%2", "a?b=c", "a#b", "a b", "a\\b",
     "a\r\nX-Evil: 1", "ü/é", "{id}", "a;b",
     "@evil.example", "//evil.example", "http://evil.example/", "a&b=c", "...", ".hidden", "\x00", "a+b"],
    ids=repr,
)  # fmt: skip
async def test_an_identifier_stays_one_segment_of_the_path(resource_id):
    found, (asked,) = await ask(response(OWNED), resource_id=resource_id)
    assert found == {"tenant": "acme"}
    prefix, _, segment = asked.target.rpartition("/")
    assert prefix == "/v1/orders"
    assert unquote(segment) == resource_id
    assert not set(segment) & set("?#;\\ ")
    assert "x-evil" not in asked.headers


async def test_an_identifier_stays_one_value_of_the_query():
    found, (asked,) = await ask(response(OWNED), resource_id="1&admin=1#x", template="/owner?id={id}&v=2")
    assert found == {"tenant": "acme"}
    assert asked.target == "/owner?id=1%26admin%3D1%23x&v=2"


@pytest.mark.parametrize(
    "resource_id",
    ["../x", "a/../b", "a/..", "..\\x", "a\\..\\b", "./a", "a/./b", "a/.", "..%2fx", "a%2f..%2fb", "a%5c..", "%2e%2e",
     "%2E.", ".%2e/x", "%2e", "a/%2e%2e/b", "..;/x", "..;v=1/x", "a/..%3bx", "%2e%2e%2f%2e%2e%2fadmin"],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("template", ["/v1/orders/{id}", "/owner?id={id}"], ids=["path", "query"])
async def test_an_identifier_with_a_step_to_another_folder_is_not_asked_about(resource_id, template):
    assert await ask(response(OWNED), resource_id=resource_id, template=template) == (None, [])


@pytest.mark.parametrize(
    "resource_id", [".", "..", "", "a" * 1_025, "\ud800"], ids=["dot", "dots", "empty", "long", "lone"]
)
async def test_what_cannot_be_one_segment_is_not_asked_about(resource_id):
    assert await ask(response(OWNED), resource_id=resource_id) == (None, [])


async def test_a_dot_that_makes_a_parent_folder_with_the_text_around_it_is_not_asked_about():
    assert await ask(response(OWNED), resource_id=".", template="/v1/.{id}") == (None, [])


@pytest.mark.parametrize(
    "answer",
    [
        response(OWNED, status="404 Not Found"),
        response(OWNED, status="500 Oops"),
        response(OWNED, status="204 No Content"),
        response(OWNED, status="401 Unauthorized"),
        response(OWNED, kind="text/html"),
        response(b"<html>"),
        response(b""),
        response(b'{"tenant": "acme", "tenant": "globex"}'),
        response(b'{"tenant": NaN}'),
        response(b'{"tenant": "\xff"}'),
        response(b"[" * 50_000),
        response(OWNED + b" " * 1_000),
        response(OWNED, content_encoding="gzip"),
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{",
        b"not http at all\r\n\r\n",
        b"",
    ],
    ids=["404", "500", "204", "401", "html", "not-json", "empty", "twice", "nan", "bytes", "deep", "long", "gzip",
         "cut", "noise", "closed"],
)  # fmt: skip
async def test_only_a_plain_200_with_json_is_an_answer(answer, caplog):
    with caplog.at_level(logging.DEBUG):
        found, seen = await ask(answer, max_bytes=60_000 if answer.count(b"[") > 9 else 1_000)
    assert found is None
    assert len(seen) == 1
    assert "very-secret" not in caplog.text


async def test_a_redirect_is_not_followed():
    async with endpoint(lambda _asked: response(OWNED)) as other:
        location = f"{other.url}/v1/orders/S-1"
        found, seen = await ask(response(OWNED, status="307 Temporary Redirect", location=location))
        assert (found, len(seen), other.seen) == (None, 1, [])


async def test_an_owner_that_says_nothing_is_given_up(caplog):
    found, seen = await ask(lambda _asked: None, timeout_s=0.2)
    assert (found, len(seen)) == (None, 1)
    assert "no answer within 0.2 s" in caplog.text


async def test_an_owner_that_is_not_there_gives_none():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert (
        await look_up(f"http://127.0.0.1:{port}/{{id}}", resource_id="S", headers={}, timeout_s=5, max_bytes=10) is None
    )


async def test_faults_are_logged_without_secrets_and_without_the_identifier(caplog):
    await ask(response(OWNED, status="503 Busy"), resource_id="S-private-77")
    await ask(response(OWNED), headers={"authorization": "sk-very-secret\ntoken"}, resource_id="S-private-77")
    assert "503" in caplog.text
    assert "very-secret" not in caplog.text
    assert "S-private-77" not in caplog.text


@pytest.mark.parametrize(
    ("template", "usable"),
    [
        ("https://orders.internal/v1/{id}", True),
        ("https://orders.internal/v1?id={id}", True),
        ("http://127.0.0.1:8080/{id}", True),
        ("http://[::1]:8080/{id}", True),
        ("http://localhost/{id}", True),
        ("http://orders.internal/{id}", False),
        ("http://localhost.evil.example/{id}", False),
        ("http://127.0.0.1.evil.example/{id}", False),
        ("https://orders.internal/v1", False),
        ("https://{id}.internal/v1", False),
        ("https://{id}/v1/{id}", False),
        ("https://orders.internal/{id}/{id}", False),
        ("http://orders.localhost/{id}", False),
        ("{id}://orders.internal/", False),
        ("https://user:pass@orders.internal/{id}", False),
        ("https://orders.internal/#{id}", False),
        ("file:///etc/{id}", False),
        ("https:///{id}", False),
        ("https://orders.internal:99999/{id}", False),
        ("https://orders.internal\\@evil.example/{id}", False),
    ],
)
def test_an_address_is_https_or_this_machine_and_the_identifier_stands_after_the_host(template, usable):
    assert (lookup_url_fault(template) == "") == usable


async def test_a_wrong_address_is_not_asked():
    found = await look_up("http://orders.internal/{id}", resource_id="S", headers={}, timeout_s=1, max_bytes=10)
    assert found is None
