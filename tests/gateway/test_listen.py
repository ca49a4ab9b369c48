"""The address that a gateway over HTTP listens on."""

from __future__ import annotations

import socket

import pytest

from toolcrib.errors import ConfigError
from toolcrib.server.serve import listen_on


def test_no_answer_is_held_back_until_the_client_says_that_it_has_the_one_before() -> None:
    with listen_on("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_address_that_is_taken_is_told_with_what_to_do() -> None:
    with listen_on("127.0.0.1", 0) as taken, pytest.raises(ConfigError, match="choose another address"):
        listen_on("127.0.0.1", taken.getsockname()[1])
