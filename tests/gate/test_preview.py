from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.gate.masking import MASK
from toolcrib.gate.preview import MAX_PREVIEW_CHARS, fits_a_preview, preview


def test_a_short_call_is_shown_as_it_is():
    arguments = {"order_id": "A-1", "lines": [{"n": 1}, None, True], "to": "Zürich"}
    assert json.loads(preview(arguments)) == arguments


def test_a_long_value_hides_no_other():
    pad = "y" * 50_000
    for arguments in ({"pad": pad, "path": "/everything"}, {"request": {"pad": [pad, pad], "path": "/everything"}}):
        shown = preview(arguments)
        assert "/everything" in shown
        assert "49800 more characters" in shown
        assert hashlib.sha256(pad.encode()).hexdigest()[:16] in shown
        assert len(shown) < 1_000


def test_texts_that_differ_past_the_cut_look_different():
    assert preview({"text": "t" * 5_000 + "a"}) != preview({"text": "t" * 5_000 + "b"})
    assert preview({"n" * 5_000 + "a": 1}) != preview({"n" * 5_000 + "b": 1})


def test_every_name_is_shown_however_many_there_are():
    arguments = {f"name_{n}": "v" for n in range(1_000)}
    assert list(json.loads(preview(arguments))) == list(arguments)


@pytest.mark.parametrize(
    "name", ["password", "access_token", "apiKey", "Authorization", "session_cookie", "client-secret"]
)
def test_a_secret_is_told_by_its_kind_and_size_alone(name):
    assert json.loads(preview({name: "hush-hush"})) == {name: f"{MASK} (string, 9 characters)"}
    assert "hush" not in preview({"in": [{name: {"deep": ["hush"]}}]})


@pytest.mark.parametrize("name", ["key", "object_key", "auth", "pin"])
def test_a_name_that_is_mostly_an_ordinary_word_hides_nothing_from_an_approver(name):
    assert "prod/everything" in preview({"bucket": "b", name: "prod/everything"})


def test_what_no_preview_can_hold_does_not_fit():
    assert fits_a_preview({"text": "t" * 10_000_000})
    assert not fits_a_preview({"ids": list(range(MAX_PREVIEW_CHARS))})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from("abcdefgh"), JSON, max_size=5))
def test_a_preview_is_json_with_every_top_level_name(arguments):
    assert list(json.loads(preview(arguments))) == list(arguments)
