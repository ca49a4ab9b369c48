"""How a text reads, whatever it is written with."""

from __future__ import annotations

import base64

import pytest

from toolcrib.review.confusables import LOOKALIKES
from toolcrib.review.normal import plain, skeleton
from toolcrib.review.sketch import likeness, sketch


@pytest.mark.parametrize(
    ("raw", "text", "mark"),
    [
        ("Plain  text", "plain text", ""),
        ("&#x69;gnore", "ignore", "entities"),
        ("&#X69;gnore", "ignore", "entities"),
        ("&#0000000105;gnore", "ignore", "entities"),
        ("&#105gnore", "ignore", "entities"),
        ("ig&ZeroWidthSpace;nore", "ignore", ""),
        ("A &amp; B", "a & b", ""),
        ("ｉｇｎｏｒｅ", "ignore", "disguised"),
        ("𝗶𝗴𝗻𝗼𝗿𝗲", "ignore", "disguised"),
        ("ign\u043ere", "ignore", "disguised"),
        ("i g n o r e  m e", "ignore me", ""),
        ("1gn0re", "ignore", "digits"),
        ("s3 bucket, v2, base64", "s3 bucket, v2, base64", ""),
        ("привет мир", "привет мир", ""),
        ("10 µs", "10 μs", ""),
    ],
)
def test_disguise_is_undone_and_leaves_its_mark(raw: str, text: str, mark: str) -> None:
    read = plain(raw)
    assert read.text == text
    for name in ("entities", "disguised", "digits", "encoded"):
        assert bool(getattr(read, name)) is (name == mark)


def test_tag_characters_are_read_with_the_rest() -> None:
    hidden = "".join(chr(0xE0000 + ord(c)) for c in "call me")
    assert plain("Adds." + hidden).text == "adds. call me"


def test_escapes_are_read_with_the_rest() -> None:
    assert "ignore" in plain(r"\u0069\u0067\u006e\u006f\u0072\u0065").text
    assert "ignore" in plain("%69%67%6e%6f%72%65").text


def test_base64_that_says_nothing_is_left_alone() -> None:
    for run in (
        "A" * 40,
        "deadbeef" * 8,
        "0123456789abcdefABCDEF0123456789",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
    ):
        assert plain(run).encoded == ""


def test_the_alphabet_is_not_a_word_set_apart() -> None:
    assert plain("a b c d e f g h").spaced == ""


def test_names_that_read_alike_have_one_skeleton() -> None:
    assert (
        len({skeleton(name) for name in ("send_email", "sendEmail", "SEND-EMAIL", "send_em\u0430il", "ｓend_email")})
        == 1
    )
    assert skeleton("send_email") != skeleton("send_emails")


def test_lookalikes_are_single_letters_that_read_as_ascii() -> None:
    assert all(len(one) == 1 and not one.isascii() and other.isascii() for one, other in LOOKALIKES.items())


def test_near_equal_texts_are_alike_and_others_are_not() -> None:
    text = "Search the knowledge base of the company for articles and return the best matching ones with their titles"
    assert likeness(sketch(text), sketch(text)) == 1.0
    assert likeness(sketch(text), sketch(text + " quickly")) > 0.8
    assert likeness(sketch(text), sketch("Delete a user account for good, with all of its data and files")) < 0.1
    assert likeness(sketch(""), frozenset()) == 0.0


def test_a_code_that_stands_for_no_letter_is_no_fault() -> None:
    text = f"&amp; &#{'1' * 5_000};"
    assert "&" in plain(text).text


def test_of_marks_stacked_on_one_letter_no_more_are_read_than_a_script_has() -> None:
    assert len(plain("a" + "\u0301" * 10_000).text) < 40
    assert plain("Tiếng Việt, नमस्ते, שָׁלוֹם").text == "tiếng việt, नमस्ते, שָׁלוֹם"


def test_everything_that_is_encoded_is_read() -> None:
    said = [f"sentence number {n} is this one" for n in range(12)]
    runs = " ".join(base64.b64encode(one.encode()).decode() for one in said)
    assert [one for one in said if one not in plain(runs).text] == []
