"""A service that speaks OpenAI's wire, on this machine: what is sent, what counts as an answer, what a fault says."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.retrieval.embedders.service import Service, answer, serving, vector
from toolcrib.errors import ConfigError, RetrievalError
from toolcrib.retrieval.embedders.hosted import REST_S, Clock, HostedEmbedder
from toolcrib.retrieval.embedders.shaping import RefusedTextError, Shaping

KEY = "sk-very-secret-0123"


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as one:
        yield one


class Hands:
    """A clock moved by its waits."""

    def __init__(self) -> None:
        self.time, self.waits = 100.0, list[float]()
        self.clock = Clock(now=lambda: self.time, wait=self.wait)

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def made(service: Service, hands: Hands) -> Callable[..., HostedEmbedder]:
    def make(**more: Any) -> HostedEmbedder:
        asked = {"url": service.url, "name": "small", "api_key": lambda: KEY, "clock": hands.clock, **more}
        return HostedEmbedder(**asked)

    return make


Made = Callable[..., HostedEmbedder]


def test_texts_go_out_in_batches_and_come_back_in_order(service: Service, made: Made) -> None:
    model = made()
    texts = ["a" * n for n in range(1, 131)]
    rows = model.embed_documents(texts)
    assert model.dim == 3
    assert [len(batch) for batch in service.texts if batch != ["a"]] == [64, 64, 2]
    for text, row in zip(texts, rows, strict=True):
        assert row == pytest.approx(np.array(vector(text)) / np.linalg.norm(vector(text)), abs=1e-6)
    path, headers, body = service.seen[-1]
    assert path == "/v1/embeddings"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert body == {"model": "small", "input": texts[128:], "encoding_format": "float"}


def test_a_request_costs_one_exchange(service: Service, made: Made) -> None:
    model = made(shaping=Shaping(dimensions=2, query_prefix="q: "))
    found = model.embed_query("aaa")
    assert service.texts == [["q: aaa"]]
    assert found.shape == (2,)
    assert np.linalg.norm(found) == pytest.approx(1.0)


def test_long_texts_are_cut_and_empty_ones_are_sent_as_something(service: Service, made: Made) -> None:
    model = made(shaping=Shaping(dimensions=3, max_tokens=5))
    model.embed_documents(["b" * 1000, "   "])
    assert service.texts == [["b" * 20, "-"]]


def test_without_a_key_none_is_sent(service: Service, made: Made) -> None:
    made(api_key=None).embed_query("a")
    assert all("authorization" not in headers for _, headers, _ in service.seen)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_documents_are_tried_again_with_growing_waits(service: Service, hands: Hands, made: Made, status: int) -> None:
    model = made(shaping=Shaping(dimensions=3))
    service.answers = [(status, {}), (status, {}), answer]
    assert model.embed_documents(["abc"]).any()
    assert hands.waits == [0.5, 1.0]
    assert len(service.seen) == 3


def test_the_service_may_say_how_long_to_wait(service: Service, hands: Hands, made: Made) -> None:
    service.headers = {"retry-after": "7"}
    service.answers = [(429, {})]
    assert made(shaping=Shaping(dimensions=3)).embed_documents(["abc"]).any()
    assert hands.waits == [7.0]


def test_a_request_is_never_held_up_beyond_its_time(service: Service, hands: Hands, made: Made) -> None:
    service.headers = {"retry-after": "3600"}
    service.answers = [(429, {})] * 9
    model = made(shaping=Shaping(dimensions=3), timeout_s=2.0)
    with pytest.raises(RetrievalError, match="429"):
        model.embed_query("abc")
    assert hands.waits == []
    assert len(service.seen) == 1


def test_a_service_that_is_down_is_left_alone_for_a_while(service: Service, hands: Hands, made: Made) -> None:
    model = made(shaping=Shaping(dimensions=3))
    service.answers = [(500, {})] * 4
    with pytest.raises(RetrievalError):
        model.embed_documents(["abc"])
    n_asked = len(service.seen)
    for _ in range(3):
        with pytest.raises(RetrievalError, match="left alone"):
            model.embed_query("abc")
    assert len(service.seen) == n_asked
    hands.time += REST_S
    assert model.embed_query("abc").any()


def test_a_text_that_is_refused_does_not_rest_the_service(service: Service, made: Made) -> None:
    model = made(shaping=Shaping(dimensions=3))
    service.answers = [(400, {})]
    with pytest.raises(RetrievalError, match="400"):
        model.embed_documents(["odd"])
    assert model.embed_query("abc").any()
    service.answers = [(400, {})] * 99
    for _ in range(20):
        with pytest.raises(RetrievalError):
            model.embed_documents(["odd"])
    assert len(service.seen) == 10, "one that refuses everything is down after all"


def test_i01_texts_that_are_refused_never_cost_others_their_vectors(service: Service, made: Made) -> None:
    model = made(shaping=Shaping(dimensions=3))
    service.answers = [lambda body: (400, {}) if "odd" in body["input"][0] else answer(body)] * 99
    for _ in range(20):
        with pytest.raises(RefusedTextError):
            model.embed_documents(["odd"])
    assert model.embed_documents(["abc"]).any()
    for _ in range(20):
        with pytest.raises(RefusedTextError):
            model.embed_query("odd")
    assert model.embed_query("abc").any()


def test_requests_that_are_refused_change_nothing_and_cost_one_exchange_each(service: Service, made: Made) -> None:
    model = made(shaping=Shaping(dimensions=3))
    service.answers = [(422, {})] * 20
    for _ in range(20):
        with pytest.raises(RefusedTextError):
            model.embed_query("odd")
    assert len(service.seen) == 20
    assert model.embed_query("abc").any()


ODD_ANSWERS = {
    "too few": lambda body: (200, {"data": answer(body)[1]["data"][:1]}),
    "one place twice": lambda body: (200, {"data": [{"index": 0, "embedding": [1.0]}] * 2}),
    "places missing in part": lambda body: (200, {"data": [{"index": 0, "embedding": [1.0]}, {"embedding": [1.0]}]}),
    "places beyond": lambda body: (200, {"data": [{"index": i, "embedding": [1.0]} for i in (0, 9)]}),
    "lengths differ": lambda body: (200, {"data": [{"index": i, "embedding": [1.0] * (i + 1)} for i in (0, 1)]}),
    "no numbers": lambda body: (200, {"data": [{"index": i, "embedding": ["x"]} for i in (0, 1)]}),
    "empty": lambda body: (200, {"data": [{"index": i, "embedding": []} for i in (0, 1)]}),
    "null": lambda body: (200, {"data": [{"index": i, "embedding": [None]} for i in (0, 1)]}),
    "no data": lambda body: (200, {"error": KEY}),
    "not JSON": lambda body: (200, b"<html>"),
    "a list": lambda body: (200, b"[]"),
    "a redirect": lambda body: (307, {}),
}


@pytest.mark.parametrize("odd", ODD_ANSWERS.values(), ids=ODD_ANSWERS)
def test_an_answer_that_is_not_one_vector_a_text_is_none(service: Service, made: Made, odd: Any) -> None:
    model = made(shaping=Shaping(dimensions=1))
    service.answers = [odd] * 4
    with pytest.raises(RetrievalError):
        model.embed_documents(["abc", "b"])


def test_places_may_be_left_out_altogether(service: Service, made: Made) -> None:
    service.answers = [lambda body: (200, {"data": [{"embedding": vector(text)} for text in body["input"]]})]
    rows = made(shaping=Shaping(dimensions=3)).embed_documents(["a", "bbbb"])
    assert rows[0, 1] > 0
    assert rows[1, 1] == 0


def test_an_endless_answer_is_given_up(service: Service, made: Made) -> None:
    service.answers = [(200, b" " * 400_000)]
    with pytest.raises(RetrievalError, match="more than"):
        made(shaping=Shaping(dimensions=3)).embed_query("abc")


def test_numbers_beyond_what_can_be_compared_are_refused_with_what_to_do(service: Service, made: Made) -> None:
    service.answers = [(200, {"data": [{"index": 0, "embedding": [1.0] * 1536}]})]
    with pytest.raises(ConfigError, match="1536") as fault:
        _ = made().dim
    assert "dimensions = 1024" in fault.value.hint
    with pytest.raises(RetrievalError, match="3 numbers a text, 8 are wanted"):
        made(shaping=Shaping(dimensions=8)).embed_query("abc")


def test_vectors_of_another_length_than_before_are_not_mixed_in(service: Service, made: Made) -> None:
    model = made()
    assert model.embed_query("abc").any()
    service.answers = [(200, {"data": [{"index": 0, "embedding": [1.0] * 5}]})]
    with pytest.raises(RetrievalError, match="5 numbers a text and gave 3"):
        model.embed_query("abcd")


def test_another_address_name_or_cut_is_another_model(made: Made) -> None:
    ids = {
        made().model_id,
        made(name="large").model_id,
        made(url="https://models.example/v1").model_id,
        made(shaping=Shaping(dimensions=2)).model_id,
    }
    assert len(ids) == 4
    assert made(api_key=None).model_id in ids, "the key is no part of it"


@pytest.mark.parametrize(
    "url",
    [
        "http://models.example/v1",
        "ftp://127.0.0.1/v1",
        "https://user:pass@models.example/v1",
        "https://",
        "https://[::1",
    ],
)
def test_an_address_that_must_not_have_the_key_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as fault:
        HostedEmbedder(url=url, name="small", api_key=lambda: KEY)
    assert "pass" not in str(fault.value)


@pytest.mark.parametrize(
    "said",
    [
        (401, {"error": f"Incorrect API key provided: {KEY}"}),
        (500, {"error": KEY}),
        (200, {"error": KEY}),
    ],
    ids=["refused", "fault", "nonsense"],
)
def test_the_key_stands_in_no_error_log_or_repr(
    service: Service, made: Made, caplog: pytest.LogCaptureFixture, said: Any
) -> None:
    model = made(shaping=Shaping(dimensions=3))
    service.answers = [said] * 4
    caplog.set_level(logging.DEBUG)
    with pytest.raises(RetrievalError) as fault:
        model.embed_documents(["private text"])
    texts = [str(fault.value), repr(fault.value), caplog.text, repr(model), model.model_id]
    assert not any(KEY in text or "private text" in text for text in texts)
    assert "words alone" in caplog.text


def test_a_key_that_no_header_can_hold_is_told_without_it(made: Made) -> None:
    model = made(api_key=lambda: f"{KEY}\nx: y", shaping=Shaping(dimensions=3))
    with pytest.raises(RetrievalError) as fault:
        model.embed_query("abc")
    assert KEY not in str(fault.value)


def test_nobody_there_is_a_fault_like_any_other(service: Service, hands: Hands) -> None:
    model = HostedEmbedder(url="http://127.0.0.1:1/v1", name="small", clock=hands.clock)
    with pytest.raises(RetrievalError, match="ConnectError"):
        _ = model.dim
