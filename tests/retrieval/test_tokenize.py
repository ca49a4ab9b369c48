from __future__ import annotations

import pytest

from toolcrib.retrieval.text import clean
from toolcrib.retrieval.tokenize import document_terms, is_mostly_latin, query_terms


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        pytest.param("createPullRequest", "create pull request", id="camel"),
        pytest.param("HTTPServerStart", "start http server", id="acronym"),
        pytest.param("list_s3_buckets", "list S3 buckets", id="digits"),
        pytest.param("GitHub", "github", id="brand"),
        pytest.param("send_email", "e-mail", id="hyphen"),
        pytest.param("issue_refund", "refunding issues", id="word forms"),
        pytest.param("Straße_anzeigen", "strasse", id="sharp s"),
        pytest.param("Café", "cafe", id="accent"),
        pytest.param("关闭工单", "工单", id="chinese"),
        pytest.param("закрыть_заявку", "заявку", id="cyrillic"),
        pytest.param("टिकट_खोलें", "टिकट", id="devanagari"),
    ],
)
def test_query_meets_the_name_as_people_write_it(written: str, asked: str) -> None:
    assert set(query_terms(asked)) <= set(document_terms(written, max_terms=40))


def test_request_words_are_dropped_from_queries_but_kept_in_documents() -> None:
    text = "can you please help me recommend something"

    assert query_terms(text) == ()
    assert len(document_terms(text, max_terms=40)) == 7


def test_particle_stays_where_a_verb_needs_it() -> None:
    assert "off" in query_terms("turn the fan off")
    assert "on" not in query_terms("comment on the issue")


def test_query_terms_are_distinct_and_bounded() -> None:
    assert query_terms("weather " * 5_000) == ("weather",)
    assert len(query_terms(" ".join(f"w{i}x" for i in range(5_000)))) <= 128


def test_document_terms_stop_at_the_cap() -> None:
    assert len(document_terms("word " * 1_000, max_terms=400)) == 400


def test_clean_text_survives_utf8_and_keeps_head_and_tail() -> None:
    hostile = "\ud800\x00\u202etxet\u200b " + "x" * 9_000 + " refund"

    cleaned = clean(hostile, max_chars=1_000)

    cleaned.encode()
    assert len(cleaned) <= 1_000
    assert cleaned.strip().startswith("txet")
    assert cleaned.endswith("refund")


def test_script_decides_whether_the_english_model_is_asked() -> None:
    assert is_mostly_latin("créer un ticket")
    assert not is_mostly_latin("查询工单 id")
    assert not is_mostly_latin("?!")
