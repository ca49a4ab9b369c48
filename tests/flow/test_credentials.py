"""Upstream credentials: the server's own or the caller's own, never another caller's, and a missing one says so."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.conftest import serving as backend
from tests.connectors.servers.polite import make_server
from tests.flow.worlds import caller
from toolcrib.crib import Crib
from toolcrib.types import Caller, CallerKind, Code

ANN, BEN, CAT = (caller(subject=name, tenant="acme") for name in ("ann", "ben", "cat"))
SECRETS = {"ANN": "anns-own-credential", "BEN": "bens-own-credential", "LIST": "for-listing-alone"}
ROWS = """
[[vault]]
name = "far"
subject = "ann"
tenant = "acme"
secret = "env:ANN"
[[vault]]
name = "far"
subject = "ben"
tenant = "acme"
secret = "file:ben.secret"
[[vault]]
name = "far"
refresh = true
secret = "env:LIST"
[[tools]]
match = "far.*"
risk = "read"
"""


class Recorder:
    """An application, and the credential of every tools/call and tools/list that came to it."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.seen: list[tuple[str, str]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope.get("headers", ())}
        body = b""

        async def heard() -> Any:
            nonlocal body
            message = await receive()
            body += message.get("body", b"")
            if message["type"] == "http.request" and not message.get("more_body") and body:
                self.seen.append((json.loads(body).get("method", ""), headers.get("authorization", "")))
            return message

        await self._app(scope, heard, send)

    def of(self, method: str) -> list[str]:
        return [credential for seen, credential in self.seen if seen == method]


@pytest.fixture
async def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Crib, Recorder, Path]]:
    """A crib whose one server wants the caller's own credential, and what reached that server."""
    for name in ("ANN", "LIST"):
        monkeypatch.setenv(name, SECRETS[name])
    (tmp_path / "ben.secret").write_text(SECRETS["BEN"], encoding="utf-8")
    recorder = Recorder(make_server().streamable_http_app(json_response=True))
    async with backend(recorder) as url:
        (tmp_path / "toolcrib.toml").write_text(
            f'[crib]\nenvironment = "test"\n[[servers]]\nid = "far"\nurl = "{url}"\n'
            f'headers = {{ Authorization = "Bearer caller:far" }}\n{ROWS}',
            encoding="utf-8",
        )
        async with Crib.open(tmp_path) as crib:
            report = await crib.refresh()
            assert not report.failed, report.failed
            crib.approve(None, reviewer="tests")
            yield crib, recorder, tmp_path


Far = tuple[Crib, Recorder, Path]


async def echoed(crib: Crib, who: Caller) -> Code:
    return (await crib.call("far.echo", {"text": "hi"}, caller=who)).code


async def test_each_caller_comes_with_its_own_credential_and_listing_with_neither(far: Far) -> None:
    crib, recorder, _folder = far
    for who in (ANN, BEN, ANN):
        assert await echoed(crib, who) is Code.OK
    assert recorder.of("tools/call") == [f"Bearer {SECRETS[name]}" for name in ("ANN", "BEN", "ANN")]
    assert set(recorder.of("tools/list")) == {f"Bearer {SECRETS['LIST']}"}


@pytest.mark.parametrize(
    "who",
    [
        CAT,
        caller(subject="ann", tenant="other"),
        caller(subject="ann"),
        caller(subject="bot", tenant="acme", kind=CallerKind.AGENT, on_behalf_of="ann"),
    ],
    ids=["no entry", "a namesake in another tenant", "no tenant", "only says that it acts for ann"],
)
async def test_who_has_none_is_told_so_and_nothing_is_sent(far: Far, who: Caller) -> None:
    crib, recorder, _folder = far
    assert await echoed(crib, ANN) is Code.OK
    recorder.seen.clear()
    done = await crib.call("far.echo", {"text": "hi"}, caller=who)
    assert done.code is Code.NO_CREDENTIAL
    assert not any(secret in json.dumps(done.to_dict()) for secret in SECRETS.values())
    assert recorder.seen == []


async def test_an_agent_that_was_given_a_users_token_uses_that_users_credential(far: Far) -> None:
    crib, recorder, _folder = far
    agent = caller(subject="bot", tenant="acme", kind=CallerKind.AGENT, on_behalf_of="ann", acting_for=ANN)
    assert await echoed(crib, agent) is Code.OK
    assert recorder.of("tools/call") == [f"Bearer {SECRETS['ANN']}"]


async def test_the_session_of_a_delegated_agent_serves_no_agent_that_only_says_whom_it_acts_for(far: Far) -> None:
    crib, recorder, _folder = far
    said = caller(subject="bot", tenant="acme", kind=CallerKind.AGENT, on_behalf_of="ann")
    given = caller(subject="bot", tenant="acme", kind=CallerKind.AGENT, on_behalf_of="ann", acting_for=ANN)
    codes = [await echoed(crib, who) for who in (said, given, said)]
    assert codes == [Code.NO_CREDENTIAL, Code.OK, Code.NO_CREDENTIAL]
    assert len(recorder.of("tools/call")) == 1


async def test_a_credential_that_was_changed_or_taken_away_counts_on_the_next_call(far: Far) -> None:
    crib, recorder, folder = far
    assert await echoed(crib, BEN) is Code.OK
    (folder / "ben.secret").write_text("bens-new-credential", encoding="utf-8")
    assert await echoed(crib, BEN) is Code.OK
    assert recorder.of("tools/call")[-1] == "Bearer bens-new-credential"
    rewrite(folder, lambda text: text.replace('subject = "ben"', 'subject = "dan"'))
    assert await echoed(crib, BEN) is Code.NO_CREDENTIAL


async def test_without_an_entry_for_refresh_the_listing_fails_and_says_what_to_do(far: Far) -> None:
    crib, _recorder, folder = far
    rewrite(folder, lambda text: text.replace("refresh = true", 'subject = "eve"'))
    report = await crib.refresh()
    assert "refresh = true" in report.failed["far"]
    assert await echoed(crib, ANN) is Code.OK, "what was published before keeps serving"


def rewrite(folder: Path, change: Callable[[str], str]) -> None:
    config = folder / "toolcrib.toml"
    config.write_text(change(config.read_text(encoding="utf-8")), encoding="utf-8")
