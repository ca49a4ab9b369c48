"""The approvals webhook: what is sent, and which answers decide."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import time

import pytest

from toolcrib.connectors.webhook import MAX_AGE_S, SIGNATURE_HEADER, WebhookAnswer, is_signed, notify, signed

from .endpoint import endpoint, response

SECRET = "whsec-shared-with-the-service"
BODY = {"approval_id": "a1b2c3d4", "tool": {"tool_id": "shop.refund"}, "text": "ü"}
GRANT = {"approval_id": "a1b2c3d4", "decision": "granted", "by": "mia"}


def answer(body, *, secret=SECRET, at=None, **more):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    signature = signed(data, secret=secret, at=time.time() if at is None else at) if secret else ""
    return response(data, **({"x_toolcrib_signature": signature} if signature else {}), **more)


async def told(reply, *, secret=SECRET, timeout_s=5.0):
    async with endpoint(reply if callable(reply) else lambda _asked: reply) as made:
        return await notify(made.url + "/hook?k=url-token", body=BODY, secret=secret, timeout_s=timeout_s), made.seen


async def test_a_request_is_posted_once_and_signed_over_time_and_body():
    given, (asked,) = await told(answer(GRANT))
    assert given == WebhookAnswer(decision="granted", by="mia")
    assert (asked.method, asked.target) == ("POST", "/hook?k=url-token")
    assert json.loads(asked.body) == BODY
    stamp, mac = (part.partition("=")[2] for part in asked.headers[SIGNATURE_HEADER.lower()].split(","))
    assert mac == hmac.new(SECRET.encode(), stamp.encode() + b"." + asked.body, hashlib.sha256).hexdigest()
    assert is_signed(asked.body, f"t={stamp},v1={mac}", secret=SECRET, now=time.time())


async def test_a_signed_refusal_decides_too():
    given, _ = await told(answer({**GRANT, "decision": "denied"}))
    assert given == WebhookAnswer(decision="denied", by="mia")


@pytest.mark.parametrize(
    "reply",
    [response(b"", status="202 Accepted"), response(b"", status="204 No Content"), response(b"{}"), response(b"")],
    ids=["202", "204", "no-decision", "empty"],
)
async def test_an_answer_without_a_decision_leaves_the_request_waiting(reply, caplog):
    assert (await told(reply))[0] == WebhookAnswer()
    assert caplog.text == ""


@pytest.mark.parametrize(
    "reply",
    [
        lambda: answer(GRANT, secret=""),
        lambda: answer(GRANT, secret="another"),
        lambda: answer(GRANT, at=time.time() - MAX_AGE_S - 60),
        lambda: answer(GRANT, at=time.time() + MAX_AGE_S + 60),
        lambda: answer({**GRANT, "approval_id": "other-request"}),
        lambda: answer({"decision": "granted", "by": "mia"}),
        lambda: answer({**GRANT, "decision": "GRANTED"}),
        lambda: answer({**GRANT, "decision": True}),
        lambda: answer({**GRANT, "by": ""}),
        lambda: answer({**GRANT, "by": "  "}),
        lambda: answer({**GRANT, "by": ["mia"]}),
        lambda: answer({**GRANT, "by": "m" * 201}),
        lambda: answer({**GRANT, "by": "mia\u202e"}),
        lambda: answer({"approval_id": "a1b2c3d4", "decision": "granted"}),
        lambda: answer([GRANT]),
        lambda: answer(b'{"decision": "denied", "approval_id": "a1b2c3d4", "by": "mia", "decision": "granted"}'),
        lambda: answer(GRANT, status="201 Created"),
        lambda: answer(GRANT, status="500 Oops"),
        lambda: answer(GRANT, status="302 Found", location="http://127.0.0.1:9/"),
        lambda: answer(GRANT, kind="text/plain"),
        lambda: response(json.dumps(GRANT).encode(), x_toolcrib_signature="t=1,v1=" + "0" * 64),
        lambda: response(json.dumps(GRANT).encode(), x_toolcrib_signature="v1=" + "0" * 64),
        lambda: answer(b"{" + b" " * 70_000 + b"}"),
    ],
    ids=["unsigned", "other-secret", "old", "ahead", "other-request", "no-request", "case", "bool", "nobody", "blank",
         "list", "long", "hidden", "no-by", "array", "twice", "201", "500", "redirect", "text", "forged", "malformed",
         "oversized"],
)  # fmt: skip
async def test_a_decision_that_cannot_be_trusted_is_none_and_is_logged(reply, caplog):
    given, seen = await told(reply())  # signed now: an old signature alone would hide every other fault
    assert (given.decision, given.by, len(seen)) == ("", "", 1)
    assert given.fault
    assert given.fault in caplog.text
    assert SECRET not in caplog.text
    assert "url-token" not in caplog.text


async def test_our_own_signed_request_sent_back_decides_nothing():
    def echo(asked):
        return response(asked.body, x_toolcrib_signature=asked.headers[SIGNATURE_HEADER.lower()])

    assert (await told(echo))[0] == WebhookAnswer()


async def test_without_a_secret_nothing_is_signed_and_no_decision_is_taken():
    given, (asked,) = await told(answer(GRANT, secret=""), secret="")
    assert SIGNATURE_HEADER.lower() not in asked.headers
    assert given.decision == ""
    forged, _ = await told(response(json.dumps(GRANT).encode(), x_toolcrib_signature=_with_empty_secret()), secret="")
    assert forged.decision == ""


def _with_empty_secret():
    return signed(json.dumps(GRANT).encode(), secret="", at=time.time())


async def test_a_service_that_does_not_answer_is_given_up(caplog):
    given, _ = await told(lambda _asked: None, timeout_s=0.2)
    assert given == WebhookAnswer(fault="no answer within 0.2 s")


@pytest.mark.parametrize(
    "url", ["http://hooks.example/x", "ftp://hooks.example/x", "https://u:p@hooks.example/", "", "https://"]
)
async def test_only_https_or_this_machine_is_told(url, caplog):
    with caplog.at_level(logging.DEBUG):
        given = await notify(url, body=BODY, secret=SECRET, timeout_s=1)
    assert given.fault.startswith("its address is wrong")


@pytest.mark.parametrize(
    ("header", "fits"),
    [
        (signed(b"x", secret=SECRET, at=1_000), True),
        (signed(b"x", secret=SECRET, at=1_000).upper(), False),
        (signed(b"x", secret=SECRET, at=1_000) + " ", False),
        (signed(b"x", secret=SECRET, at=1_000) + ", " + signed(b"x", secret=SECRET, at=1_000), False),
        (signed(b"y", secret=SECRET, at=1_000), False),
        (signed(b"x", secret=SECRET, at=1_000).replace("t=1000", "t=1001"), False),
        ("", False),
    ],
    ids=["right", "upper", "space", "two", "body", "time", "none"],
)
def test_a_signature_fits_one_body_one_time_and_one_secret(header, fits):
    assert is_signed(b"x", header, secret=SECRET, now=1_100) is fits
    assert not is_signed(b"x", header, secret="", now=1_100)
