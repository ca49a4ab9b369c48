from __future__ import annotations

import numpy as np

from tests.retrieval.making import build, everyone, ids, search, tool
from toolcrib.retrieval.dense import DenseView, bundled_embedder, embed_tools
from toolcrib.retrieval.servers import ServerEvidence

TEXTS = (
    "calendar book a meeting",
    "calendar cancel a meeting",
    "calendar list meetings",
    "kitchen chop an onion",
    "kitchen boil water",
    "garage change a tyre",
)
SERVERS = ("cal", "cal", "cal", "food", "food", "car")


def dense_view() -> DenseView:
    vectors, pieces = embed_tools(bundled_embedder(), TEXTS)
    assert vectors is not None
    return DenseView(vectors, np.arange(len(TEXTS)), embedder=bundled_embedder(), pieces=pieces, adapt=True)


def test_tools_of_the_server_that_does_such_things_have_the_most_evidence() -> None:
    view = dense_view()
    scores = ServerEvidence(SERVERS, view).scores(view.ask("move my meeting to another day"))

    assert len(set(scores[:3].tolist())) == 1
    assert scores[0] > scores[3]
    assert scores[0] > scores[5]


def test_two_servers_are_nothing_to_choose_between() -> None:
    view = dense_view()

    assert not ServerEvidence(["a", "a", "a", "b", "b", "b"], view).scores(view.ask("a meeting")).any()


def test_without_vectors_there_is_no_evidence() -> None:
    view = dense_view()

    assert ServerEvidence(SERVERS, None).scores(None).tolist() == [0.0] * 6
    assert ServerEvidence(SERVERS, view).scores(None).tolist() == [0.0] * 6
    assert ServerEvidence(SERVERS, view).scores(view.ask("")).tolist() == [0.0] * 6
    assert ServerEvidence((), None).scores(None).tolist() == []


def test_evidence_is_soft() -> None:
    """A server of many near tools does not shut out the one tool of another server that does what is asked."""
    meetings = [tool(f"cal.meeting_{i}", "Everything about a meeting in the calendar.") for i in range(9)]
    onion = tool("food.chop_onion", "Chop an onion.")
    tyre = tool("car.change_tyre", "Change a tyre.")

    assert ids(search([*meetings, onion, tyre], "chop an onion before the meeting"))[0] == "food.chop_onion"


def test_hidden_tools_of_a_server_say_nothing() -> None:
    shown = [tool("a.list_orders", "List orders."), tool("b.send_mail", "Send mail."), tool("c.weather", "Weather.")]
    hidden = [tool(f"a.zz_{i}", "Send mail to many people.") for i in range(5)]
    index, small = build([*shown, *hidden]), build(shown)
    mask = np.array([not t.name.startswith("zz_") for t in index.tools])

    here = index.view(mask).search("send a mail").hits
    alone = small.view(everyone(small)).search("send a mail").hits

    assert [(h.tool_id, h.score) for h in here] == [(h.tool_id, h.score) for h in alone]
