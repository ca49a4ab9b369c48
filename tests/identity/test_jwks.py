"""Key sets: rotation is followed, an issuer is asked rarely and not waited for long, and the last good set ages."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.coarse import CoarseFiles
from tests.identity.signing import EC_256, RSA_A, RSA_B, key_file, key_set, public_jwk
from toolcrib.errors import ConfigError, ConnectorError
from toolcrib.identity.fetch import fetch
from toolcrib.identity.issuers import VerificationKey
from toolcrib.identity.jwks import MAX_BYTES, MAX_STALE_S, RETRY_S, FetchedKeys, FileKeys, parse_key_set
from toolcrib.identity.refused import Refused
from toolcrib.marks import file_mark

A, B = public_jwk(RSA_A, "a"), public_jwk(RSA_B, "b")
URL = "https://issuer.example/keys"


class Issuer:
    """What the address answers, how often it was asked, and what time it is."""

    def __init__(self, *entries: Any) -> None:
        self.entries: tuple[Any, ...] = entries
        self.down = False
        self.n_asked = 0
        self.now = 1_000.0
        self.asked = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def read(self) -> bytes:
        self.n_asked += 1
        self.asked.set()
        assert self.may_answer.wait(10)
        if self.down:
            raise ConnectorError("it gave no answer", where=URL)
        return key_set(*self.entries)

    def keys(self, refresh_s: float = 300.0) -> FetchedKeys:
        return FetchedKeys(URL, refresh_s=refresh_s, read=self.read, clock=lambda: self.now)


async def holds(keys: FetchedKeys | FileKeys, kid: str | None) -> bool:
    return isinstance(await keys.find(kid, algorithm="RS256"), VerificationKey)


async def settled(keys: FetchedKeys) -> None:
    """A read in the background is over."""
    reading = keys._loading
    if reading is not None:
        await asyncio.wrap_future(reading)


async def test_a_set_is_read_once_and_kept() -> None:
    issuer = Issuer(A)
    keys = issuer.keys()
    assert [await holds(keys, "a") for _ in range(5)] == [True] * 5
    assert issuer.n_asked == 1


async def test_a_new_key_is_found_and_one_taken_out_is_gone_after_the_refresh() -> None:
    issuer = Issuer(A)
    keys = issuer.keys()
    assert await holds(keys, "a")
    issuer.entries = (B,)
    issuer.now += RETRY_S
    assert await holds(keys, "b"), "an unknown key asks the issuer again"
    assert not await holds(keys, "a")
    issuer.entries = (A,)
    issuer.now += 301
    assert not await holds(keys, "b"), "a set older than the refresh is read again before it is used"
    assert await holds(keys, "a")


async def test_however_many_unknown_keys_are_named_the_issuer_is_asked_once_in_a_while() -> None:
    issuer = Issuer(A)
    keys = issuer.keys()
    for n in range(50):
        assert not await holds(keys, f"x{n}")
    assert issuer.n_asked == 1, "the set was just read"
    issuer.now += RETRY_S
    for n in range(50):
        assert not await holds(keys, f"y{n}")
    assert issuer.n_asked == 2


async def test_strangers_who_make_keys_up_soon_cost_one_question_in_a_refresh() -> None:
    issuer = Issuer(A)
    keys = issuer.keys()
    assert await holds(keys, "a")
    start, asked_at = issuer.now, []
    while issuer.now < start + 3_000:
        issuer.now += 1
        before = issuer.n_asked
        assert not await holds(keys, f"x{issuer.now}")
        asked_at += [issuer.now - start] * (issuer.n_asked - before)
    assert asked_at[:5] == [10, 30, 70, 150, 310]
    assert all(later - earlier >= 300 for earlier, later in itertools.pairwise(asked_at[5:]))
    issuer.entries = (A, B)
    issuer.now += 300
    assert await holds(keys, "b")
    issuer.entries = (A, public_jwk(RSA_B, "c"))
    issuer.now += RETRY_S
    assert await holds(keys, "c"), "a key that there was makes the next one found as soon as ever"


async def test_a_reading_that_hangs_holds_up_no_other_and_counts_no_more() -> None:
    issuer = Issuer(A)
    hangs, n_read = threading.Event(), itertools.count()

    def read() -> bytes:
        first = next(n_read) == 0
        body = key_set(A if first else B)
        if first:
            issuer.asked.set()
            assert hangs.wait(10)
        return body

    keys = FetchedKeys(URL, refresh_s=300.0, read=read, clock=lambda: issuer.now)
    waiting = asyncio.create_task(holds(keys, "b"))
    await asyncio.to_thread(issuer.asked.wait, 10)
    issuer.now += RETRY_S
    assert await holds(keys, "b"), "the next reading begins"
    hangs.set()
    assert await waiting, "and who waited for the first gets what is known by then"
    assert await holds(keys, "b")
    assert not await holds(keys, "a"), "what came too late is of before"


async def test_while_the_issuer_is_down_nobody_waits_for_it() -> None:
    issuer = Issuer(A)
    keys = issuer.keys()
    assert await holds(keys, "a")
    issuer.down = True
    issuer.now += 301
    assert await holds(keys, "a")
    issuer.may_answer.clear()
    issuer.now += RETRY_S
    try:
        assert await holds(keys, "a")
        assert not await holds(keys, "x"), "a stranger's key is refused as quickly"
        assert keys._loading is not None, "while one asks in the background"
    finally:
        issuer.may_answer.set()
        await settled(keys)


async def test_requests_at_the_same_time_share_one_read_and_the_loop_goes_on() -> None:
    issuer = Issuer(A)
    issuer.may_answer.clear()
    keys = issuer.keys()
    waiting = [asyncio.create_task(holds(keys, "a")) for _ in range(20)]
    await asyncio.to_thread(issuer.asked.wait, 10)
    assert not any(task.done() for task in waiting)
    waiting[0].cancel()
    issuer.may_answer.set()
    assert await asyncio.gather(*waiting[1:]) == [True] * 19
    assert issuer.n_asked == 1


async def test_the_last_good_set_outlives_an_outage_but_not_a_day(caplog: pytest.LogCaptureFixture) -> None:
    issuer = Issuer(A)
    keys = issuer.keys()
    assert await holds(keys, "a")
    issuer.down = True
    issuer.now += 301
    assert await holds(keys, "a")
    assert "could not be read" in caplog.text
    asked = issuer.n_asked
    assert await holds(keys, "a")
    assert issuer.n_asked == asked, "not again at once"
    issuer.now += RETRY_S
    assert await holds(keys, "a")
    await settled(keys)
    assert issuer.n_asked == asked + 1
    issuer.now += MAX_STALE_S
    assert not await holds(keys, "a")
    issuer.down = False
    issuer.now += RETRY_S
    assert await holds(keys, "a"), "and comes back by itself"


async def test_an_issuer_that_never_answered_lets_nobody_in_and_is_asked_rarely() -> None:
    issuer = Issuer(A)
    issuer.down = True
    keys = issuer.keys()
    assert [await holds(keys, "a") for _ in range(5)] == [False] * 5
    assert issuer.n_asked == 1
    issuer.down = False
    issuer.now += RETRY_S
    assert await holds(keys, "a")


def test_a_set_serves_one_event_loop_after_another() -> None:
    keys = Issuer(A).keys()
    assert [asyncio.run(holds(keys, "a")) for _ in range(2)] == [True, True]


async def test_a_file_counts_as_it_is_now(tmp_path: Path) -> None:
    path = key_file(tmp_path, A)
    keys = FileKeys(path, mark=file_mark)
    assert await holds(keys, "a")
    key_file(tmp_path, A, B)
    assert await holds(keys, "b")
    path.write_text('{"keys": [', encoding="utf-8")
    assert not await holds(keys, "a"), "a broken file holds no keys"
    key_file(tmp_path, A)
    assert await holds(keys, "a")
    path.unlink()
    assert not await holds(keys, "a")


@pytest.mark.parametrize("waits", [0.0, 2.1], ids=["at-once", "after-a-while"])
async def test_keys_that_rotate_within_one_tick_of_a_coarse_clock_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: float
) -> None:
    files = CoarseFiles(monkeypatch)
    path = key_file(tmp_path, public_jwk(RSA_A, "k"))
    size = path.stat().st_size
    keys = FileKeys(path, mark=file_mark)
    old = await keys.find("k", algorithm="RS256")
    key_file(tmp_path, public_jwk(RSA_B, "k"))
    files.passes(waits)
    new = await keys.find("k", algorithm="RS256")
    assert path.stat().st_size == size
    assert isinstance(old, VerificationKey) and isinstance(new, VerificationKey)
    assert (old.key, new.key) == (RSA_A.public_key(), RSA_B.public_key())


async def test_a_file_without_a_mark_is_read_each_time(tmp_path: Path) -> None:
    keys = FileKeys(key_file(tmp_path, A), mark=lambda _path: ())
    assert await holds(keys, "a")
    key_file(tmp_path, B)
    assert (await holds(keys, "a"), await holds(keys, "b")) == (False, True)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"keys": {}}', b"\xff", b"[" * 100_000, key_set(*[A] * 101)],
    ids=["empty", "list", "no-keys", "not-a-list", "not-utf-8", "deep", "too-many"],
)
def test_what_is_no_key_set_is_not_taken_for_an_empty_one(body: bytes) -> None:
    with pytest.raises(ConfigError):
        parse_key_set(body, where="x")


def test_malformed_and_foreign_keys_are_passed_over() -> None:
    odd = [7, None, {}, {"kty": []}, {"kty": "RSA"}, {"kty": "EC", "crv": "P-9"}, {"kty": "OKP", "crv": "X25519"}]
    assert [key.kid for key in parse_key_set(key_set(*odd, A, {**B, "kid": 7}), where="x")] == ["a"]


async def test_two_keys_of_one_name_are_no_key_unless_their_kinds_tell_them_apart(tmp_path: Path) -> None:
    path = key_file(tmp_path, A, {**B, "kid": "a"})
    assert not await holds(FileKeys(path, mark=file_mark), "a")
    key_file(tmp_path, A, public_jwk(EC_256, "a"))
    assert await holds(FileKeys(path, mark=file_mark), "a")


# --- over HTTP


@pytest.fixture
def serving() -> Iterator[Callable[[Any], str]]:
    """Starts a server that answers every request by the function given; gives its address."""
    started: list[ThreadingHTTPServer] = []

    def start(answer: Callable[[BaseHTTPRequestHandler], None]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer(self)

            def log_message(self, *_args: Any) -> None:
                return None

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        started.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/keys"

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def sends(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


async def test_keys_come_over_http_and_rotate(serving: Any, caplog: pytest.LogCaptureFixture) -> None:
    entries = [A]
    now = [0.0]
    url = serving(lambda handler: sends(handler, key_set(*entries)))
    keys = FetchedKeys(url, refresh_s=300.0, clock=lambda: now[0])
    assert await holds(keys, "a")
    assert not await holds(keys, "b")
    entries.append(B)
    now[0] += RETRY_S
    assert await holds(keys, "b")
    assert caplog.text == ""


@pytest.mark.parametrize(
    "answer",
    [
        lambda handler: sends(handler, b"", 302, Location="/elsewhere"),
        lambda handler: sends(handler, key_set(A), 404),
        lambda handler: sends(handler, key_set(A), 203),
        lambda handler: sends(handler, b" " * (MAX_BYTES + 1)),
        lambda handler: sends(handler, b"", **{"Content-Length": "x"}),
        lambda handler: handler.wfile.write(b"nonsense\r\n\r\n"),
    ],
    ids=["redirect", "not-found", "not-200", "too-large", "odd-length", "no-http"],
)
async def test_any_other_answer_is_no_key_set(serving: Any, answer: Any) -> None:
    def answers(handler: BaseHTTPRequestHandler) -> None:
        if handler.path == "/elsewhere":
            sends(handler, key_set(A))
        else:
            answer(handler)

    keys = FetchedKeys(serving(answers), refresh_s=300.0)
    assert isinstance(await keys.find("a", algorithm="RS256"), Refused)


class Drips:
    """An answer that goes on and on, a little at a time. `all_sent`: it came to its end, long after any deadline."""

    def __init__(self, begins: bytes, drop: bytes) -> None:
        self._begins, self._drop = begins, drop
        self.stop, self.all_sent = threading.Event(), threading.Event()

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        try:
            handler.wfile.write(self._begins)
            for _ in range(600):
                handler.wfile.write(self._drop)
                handler.wfile.flush()
                if self.stop.wait(0.02):
                    return
        except OSError:
            return
        self.all_sent.set()


DRIPS = {
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-Y: z\r\n"),
    "status-line": (b"HTTP/1.1 200 ", b"O"),
    "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b" "),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "early-hints": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
}


@pytest.mark.parametrize("kind", DRIPS)
async def test_an_answer_that_drips_ends_at_the_deadline_and_the_next_is_read(serving: Any, kind: str) -> None:
    drips = Drips(*DRIPS[kind])
    answers: list[Callable[[BaseHTTPRequestHandler], None]] = [drips]
    url = serving(lambda handler: answers[0](handler))
    now = [0.0]
    keys = FetchedKeys(
        url, refresh_s=300.0, read=lambda: fetch(url, timeout_s=0.3, max_bytes=MAX_BYTES), clock=lambda: now[0]
    )
    try:
        assert not await holds(keys, "a")
        assert keys._loading is None
        assert not drips.all_sent.is_set(), "nobody waited for the end"
    finally:
        drips.stop.set()
    answers[0] = lambda handler: sends(handler, key_set(A))
    now[0] += RETRY_S
    assert await holds(keys, "a")


def test_a_name_that_is_looked_up_for_ever_ends_at_the_deadline_too(monkeypatch: pytest.MonkeyPatch) -> None:
    may_answer, answered = threading.Event(), threading.Event()

    def hangs(*_args: Any, **_more: Any) -> Any:
        may_answer.wait(10)
        answered.set()
        raise OSError("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", hangs)
    try:
        with pytest.raises(ConnectorError):
            fetch("https://issuer.example/keys", timeout_s=0.1, max_bytes=10)
        assert not answered.is_set()
    finally:
        may_answer.set()


def test_nobody_at_the_address_is_a_fault_of_ours() -> None:
    with pytest.raises(ConnectorError):
        fetch("http://127.0.0.1:9/keys", timeout_s=1.0, max_bytes=10)


@pytest.mark.parametrize(
    "url",
    [
        "http://issuer.example/keys",
        "http://10.0.0.1/keys",
        "http://localhost.evil.example/keys",
        "http://127.0.0.1@evil.example/keys",
        "https://user:word@issuer.example/keys",
        "file:///etc/passwd",
        "ftp://issuer.example/keys",
        "https://",
        "keys.json",
        "http://[::1",
    ],
)
def test_keys_come_over_https_or_from_this_machine(url: str) -> None:
    with pytest.raises(ConfigError):
        FetchedKeys(url, refresh_s=300.0)
