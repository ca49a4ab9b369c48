"""Addresses that the crib asks itself: settings and the room that asks them give one answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcrib.connectors._json_http import is_loopback as asked_as_loopback
from toolcrib.connectors._json_http import url_fault
from toolcrib.connectors.lookup import lookup_url_fault
from toolcrib.errors import ConfigError
from toolcrib.settings import load_settings
from toolcrib.settings.hosts import is_loopback, seems_local
from toolcrib.settings.toml_text import toml_string

ADDRESSES = {
    "https://a.example/x": True,
    "https://a.example": True,
    "HTTPS://A.example:8443/x?y=1#z": True,
    "http://localhost/x": True,
    "HTTP://LOCALHOST:8080/x": True,
    "http://127.0.0.1:8080/x": True,
    "http://127.8.9.10/x": True,
    "http://[::1]:8080/x": True,
    "https://a.localhost/x": True,
    "http://a.localhost/x": False,
    "http://.localhost/x": False,
    "http://localhost.evil.example/x": False,
    "http://127.0.0.1.evil.example/x": False,
    "http://127.1/x": False,
    "http://2130706433/x": False,
    "http://0.0.0.0/x": False,
    "http://10.0.0.1/x": False,
    "http://[::]/x": False,
    "http://a.example/x": False,
    "http://localhost@evil.example/x": False,
    "https://u:p@a.example/x": False,
    "https://u@a.example/x": False,
    "https://@a.example/x": False,
    "https://:@a.example/x": False,
    "https://a.example\\@evil.example/x": False,
    "https://a.example/a b": False,
    " https://a.example/x": False,
    "https://a.example/x\n": False,
    "https://a.example/\t": False,
    "https://a.example/\u202e": False,
    "https://a.example:0/x": False,
    "https://a.example:99999/x": False,
    "https://a.example:x/": False,
    "https://[::1/x": False,
    "https:///x": False,
    "https:a.example/x": False,
    "//a.example/x": False,
    "ftp://a.example/x": False,
    "file:///etc/passwd": False,
    "": False,
    "https://a.example/" + "x" * 7_982: True,
    "https://a.example/" + "x" * 7_983: False,
}
TEMPLATES = {
    "https://a.example/{id}": True,
    "https://a.example/v1/{id}/owner": True,
    "https://a.example/x?id={id}&v=2": True,
    "https://a.example?id={id}": True,
    "http://127.0.0.1:8080/{id}": True,
    "https://a.example/": False,
    "https://a.example/{ID}": False,
    "https://a.example/{id}/{id}": False,
    "https://a.example/{id}?id={id}": False,
    "https://{id}.a.example/": False,
    "https://{id}/": False,
    "https://a{id}": False,
    "https://a.example{id}": False,
    "https://a.example:{id}/": False,
    "https://a.example:8{id}/": False,
    "https://[{id}]/": False,
    "https://{id}@a.example/": False,
    "https://a.example/x#{id}": False,
    "https://a.example#{id}": False,
    "{id}://a.example/": False,
    "{id}https://a.example/": False,
    "https{id}://a.example/": False,
    "http://{id}.localhost/": False,
    "http://a.localhost/{id}": False,
    "https://u:p@a.example/{id}": False,
}


def accepted(folder: Path, text: str) -> bool:
    (folder / "toolcrib.toml").write_text(text, encoding="utf-8")
    try:
        load_settings(folder)
    except ConfigError as fault:
        assert fault.where.startswith("toolcrib.toml:")
        return False
    return True


def looked_up(url: str) -> str:
    return f"[[resources]]\ntype = 'T'\ntools = '*'\nargument = '/id'\ntenant = '/t'\nurl = {toml_string(url)}\n"


@pytest.mark.parametrize(("url", "usable"), ADDRESSES.items(), ids=[repr(url)[:60] for url in ADDRESSES])
def test_an_address_is_accepted_where_and_only_where_it_would_be_asked(tmp_path: Path, url: str, usable: bool) -> None:
    webhook = f"[approvals]\nwebhook = {toml_string(url)}\nwebhook_secret = 'env:HOOK'\n"
    assert (accepted(tmp_path, webhook), url_fault(url) == "") == (usable, usable)


@pytest.mark.parametrize(("url", "usable"), TEMPLATES.items(), ids=list(TEMPLATES))
def test_an_owners_address_has_one_place_for_the_identifier_after_its_host(
    tmp_path: Path, url: str, usable: bool
) -> None:
    assert (accepted(tmp_path, looked_up(url)), lookup_url_fault(url) == "") == (usable, usable)


@pytest.mark.parametrize(("url", "usable"), [(u, ok) for u, ok in ADDRESSES.items() if "#" not in u and "?" not in u])
def test_an_owners_address_is_held_to_the_same_rules(tmp_path: Path, url: str, usable: bool) -> None:
    template = url.rstrip("/") + "/{id}" if len(url) < 100 else url[:-1] + "{id}"
    assert (accepted(tmp_path, looked_up(template)), lookup_url_fault(template) == "") == (usable, usable)


@pytest.mark.parametrize(
    ("host", "strict", "loose"),
    [
        ("localhost", True, True),
        ("LocalHost", True, True),
        ("127.0.0.1", True, True),
        ("127.9.9.9", True, True),
        ("::1", True, True),
        ("[::1]", True, True),
        ("a.localhost", False, True),
        ("localhost.example", False, False),
        ("notlocalhost", False, False),
        ("0.0.0.0", False, False),
        ("", False, False),
    ],
)
def test_only_this_machine_alone_is_loopback(host: str, strict: bool, loose: bool) -> None:
    assert (is_loopback(host), seems_local(host)) == (strict, loose)
    assert asked_as_loopback(host.strip("[]")) == strict


def test_a_server_under_localhost_gives_no_warning_and_one_elsewhere_does(tmp_path: Path) -> None:
    for url, n_warnings in (("http://a.localhost/mcp", 0), ("http://a.example/mcp", 1)):
        (tmp_path / "toolcrib.toml").write_text(f"[[servers]]\nid = 'a'\nurl = '{url}'\n", encoding="utf-8")
        assert len(load_settings(tmp_path).warnings) == n_warnings
