from __future__ import annotations

import pytest

from toolcrib.gate.masking import MASK, described, is_secret_name, looks_secret, masked


@pytest.mark.parametrize(
    "name",
    ["password", "dbPassword", "api_key", "apiKey", "APIKEY", "X-Api-Key", "access_token", "Authorization",
     "client-secret", "privateKey", "sshkey", "key", "issue_key", "credentials", "userPIN", "auth"],
)  # fmt: skip
def test_secret_looking_names_are_known(name):
    assert looks_secret(name)


@pytest.mark.parametrize("name", ["order_id", "monkey", "keyboard", "keyword", "author", "pinned", "city", "", "ключ"])
def test_ordinary_names_are_not_secret(name):
    assert not looks_secret(name)


@pytest.mark.parametrize("name", ["key", "issue_key", "userPIN", "auth", "city"])
def test_doubtful_names_are_not_surely_secret(name):
    assert not is_secret_name(name)


def test_masked_hides_whatever_lies_under_a_secret_name():
    value = {"user": "ann", "auth": {"user": "x", "pass": "y"}, "rows": [{"token": 7, "n": 1}]}
    assert masked(value) == {"user": "ann", "auth": MASK, "rows": [{"token": MASK, "n": 1}]}


def test_masked_leaves_its_input_alone_and_ends_on_deep_values():
    value = {"token": "t"}
    deep: dict = {}
    for _ in range(3000):
        deep = {"a": deep}
    masked(deep)
    assert masked(value) == {"token": MASK}
    assert value == {"token": "t"}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "boolean true"),
        (12, "number 12"),
        ("Oslo", 'string "Oslo"'),
        ([1, 2], "an array of 2"),
        ({}, "an empty object"),
        ({"token": "t", "n": 1}, "an object with token, n"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_values_are_described_by_type_and_short_form(value, words):
    assert described(value, path=["city"]) == words


def test_a_value_on_a_secret_path_is_described_by_type_alone():
    assert described("hunter2", path=["login", "password"]) == f"string ({MASK})"
    assert described("hunter2", path=["tokens", 0]) == f"string ({MASK})"


def test_long_values_are_cut():
    assert len(described("x" * 5000)) < 80
    assert len(described({f"name_{n}" * 50: 1 for n in range(500)})) < 400
