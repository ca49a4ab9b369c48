"""Models of the operator's own on the whole road: in force by settings, down without harm, silent on what is hidden."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flow.worlds import World, Worlds, caller, tool, with_default
from tests.retrieval.embedders.service import Service, answer, serving
from toolcrib.assembly import RETRY_S, _model_part
from toolcrib.crib import Crib
from toolcrib.errors import ConfigError
from toolcrib.retrieval.dense import bundled_embedder
from toolcrib.retrieval.index import Index
from toolcrib.types import Outcome

TINY = Path(__file__).parent.parent / "retrieval" / "embedders" / "tiny"
KEY = "sk-very-secret-0123"
SHOP = [
    tool("get_order", "Look up one order by its number."),
    tool("issue_refund", "Return money to a customer for a specific order."),
    tool("track_parcel", "Where a parcel is right now."),
]


@pytest.fixture
def world(make_world: Worlds) -> Worlds:
    return with_default(make_world, {"shop": SHOP})


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as one:
        yield one


def hosted(service: Service) -> str:
    return f"""
    [retrieval]
    embedder = "model"
    [retrieval.model]
    kind = "openai"
    name = "small"
    url = "{service.url}"
    api_key = "env:EMBEDDINGS_KEY"
    timeout_s = 5
    """


def on_disk(folder: Path = TINY) -> str:
    return f'[retrieval]\nembedder = "model"\n[retrieval.model]\nkind = "onnx"\npath = "{folder}"\n'


def kept(one: World) -> list[Path]:
    return sorted((one.folder / ".toolcrib" / "embeddings").glob("*.db"))


def test_a_service_embeds_what_it_is_told_to_and_only_that(
    world: Worlds, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDINGS_KEY", KEY)
    one = world(toml=hosted(service))
    offer = one.crib.select("return money to a customer")
    assert offer.tools[0].tool.tool_id == "shop.issue_refund"
    assert not offer.selection.degraded
    assert all(headers["authorization"] == f"Bearer {KEY}" for _, headers, _ in service.seen)
    texts = [text for batch in service.texts for text in batch]
    assert sum("Return money" in text for text in texts) == 1, "a tool's text goes out once"
    assert len(kept(one)) == 1


def test_i12_a_service_that_goes_down_leaves_the_words(
    world: Worlds, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDINGS_KEY", KEY)
    one = world(toml=hosted(service))
    assert not one.crib.select("return money to a customer").selection.degraded
    service.answers = [(401, {"error": KEY})] * 99
    offer = one.crib.select("where is the parcel")
    assert offer.selection.degraded
    assert offer.tools[0].tool.tool_id == "shop.track_parcel"


def test_i12_a_service_that_is_down_at_the_start_is_found_again_later(
    world: Worlds, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDINGS_KEY", KEY)
    service.answers = [(404, {})] * 99
    one = world(toml=hosted(service))
    offer = one.crib.select("where is the parcel")
    assert offer.selection.degraded
    assert offer.tools[0].tool.tool_id == "shop.track_parcel"
    service.answers = []
    with Crib.open(one.folder, connectors=one.servers) as again:
        assert not again.select("where is the parcel").selection.degraded


class Later:
    """A clock of the crib's own assembly, moved by hand."""

    def __init__(self, one: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = 100.0
        monkeypatch.setattr(one.crib._assembly, "_now", lambda: self.time)


def test_i12_a_service_that_was_down_is_looked_for_again_by_the_same_crib(
    world: Worlds, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDINGS_KEY", KEY)
    service.answers = [(404, {})] * 99
    one = world(toml=hosted(service))
    clock = Later(one, monkeypatch)
    n_before = len(service.seen)
    assert one.crib.select("where is the parcel").selection.degraded
    assert len(service.seen) == n_before + 1, "one look for each pipeline"
    clock.time += RETRY_S
    assert one.crib.select("where is the parcel").selection.degraded
    assert len(service.seen) == n_before + 2
    service.answers = []
    clock.time += RETRY_S
    assert one.crib.select("where is the parcel").selection.degraded, "in vain once: twice as long"
    assert len(service.seen) == n_before + 2
    clock.time += RETRY_S
    assert not one.crib.select("where is the parcel").selection.degraded
    n_found = len(service.seen)
    clock.time += 100 * RETRY_S
    one.crib.select("where is the parcel")
    assert len(service.seen) == n_found, "what was found is not looked for"


def test_i12_a_service_that_went_down_in_a_build_is_tried_again_but_not_for_a_refused_text(
    world: Worlds, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDINGS_KEY", KEY)
    monkeypatch.setattr("toolcrib.retrieval.embedders.hosted.REST_S", 0.0)
    status = 401

    def choosy(body: Any) -> tuple[int, Any]:
        return (status, {}) if any("parcel" in text for text in body["input"]) else answer(body)

    service.answers = [choosy] * 99
    one = world(toml=hosted(service))
    clock = Later(one, monkeypatch)
    one.crib.select("an order")
    n_asked = len(service.seen)
    one.crib.select("an order")
    assert len(service.seen) == n_asked
    status = 400
    clock.time += RETRY_S
    one.crib.select("an order")
    asked = [text for batch in service.texts[n_asked:] for text in batch]
    assert any("parcel" in text for text in asked)
    assert not any("refund" in text for text in asked), "what was embedded is kept"
    n_asked = len(service.seen)
    clock.time += 100 * RETRY_S
    one.crib.select("an order")
    assert len(service.seen) == n_asked, "the refused text is no reason to try again"


def test_a_replay_sends_no_definition_to_a_service(
    world: Worlds, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDINGS_KEY", KEY)
    one = world(toml=hosted(service))
    trace_id = one.crib.select("where is the parcel").trace_id
    one.write("shop", SHOP[:2])
    one.refresh()
    one.crib.select("an order")
    assert one.crib.replay(trace_id).same, "its index is still kept"
    for file in (one.folder / ".toolcrib" / "index").glob("*.idx"):
        file.unlink()
    for file in kept(one):
        file.unlink()
    n_asked = len(service.seen)
    found = one.crib.replay(trace_id)
    assert (found.compared, found.differs) == (False, ("index",))
    assert not any("Look up" in text for batch in service.texts[n_asked:] for text in batch)
    assert kept(one) == []


def test_indexes_of_two_models_do_not_push_each_other_out(world: Worlds) -> None:
    many = [tool(f"get_{n}", f"Look up thing {n}.") for n in range(9)]
    one = world({"shop": many})
    config = one.folder / "toolcrib.toml"
    bundled = config.read_text(encoding="utf-8")
    for n in range(8, 3, -1):
        for text in (bundled, bundled + '\n[retrieval]\nembedder = "none"\n'):
            config.write_text(text, encoding="utf-8")
            one.write("shop", many[:n])
            one.refresh()
            one.crib.select("thing 1")
    names = [file.name.rpartition("-")[0] for file in (one.folder / ".toolcrib" / "index").glob("*.idx")]
    assert sorted(names.count(name) for name in set(names)) == [3, 3]
    asked: list[str] = []

    def counting(path: Path, **more: Any) -> Index:
        asked.append(path.name)
        return update(path, **more)

    update = Index.update_file
    with pytest.MonkeyPatch.context() as patch, Crib.open(one.folder, connectors=one.servers) as again:
        patch.setattr(Index, "update_file", counting)
        config.write_text(bundled, encoding="utf-8")
        one.write("shop", many[:3])
        one.refresh()
        index = again._force.pipeline().index
    assert index is not None
    assert [name.rpartition("-")[0] for name in asked[-1:]] == [_model_part(bundled_embedder())]


def test_i12_a_text_that_the_service_refuses_costs_that_tool_its_vector_for_now(
    world: Worlds, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDINGS_KEY", KEY)
    refused = True

    def choosy(body: Any) -> tuple[int, Any]:
        return (400, {}) if refused and any("parcel" in text for text in body["input"]) else answer(body)

    service.answers = [choosy] * 99
    one = world(toml=hosted(service))
    assert not one.crib.select("return money to a customer").selection.degraded
    assert one.crib.select("where is the parcel").tools[0].tool.tool_id == "shop.track_parcel"
    indexes = one.folder / ".toolcrib" / "index"
    assert not list(indexes.glob("*.idx")), "what lacks a vector is not kept"
    refused = False
    n_asked = len(service.seen)
    told: list[str] = []
    with Crib.open(one.folder, connectors=one.servers, on_progress=told.append) as again:
        again.select("return money to a customer")
    assert len(list(indexes.glob("*.idx"))) == 1
    tools = [text for batch in service.texts[n_asked:] for text in batch if ":" in text]
    assert len(tools) == 1, "the others' vectors were kept"
    assert "embedding 3 of 3" in told


def test_a_key_that_is_not_there_is_told_by_its_name(
    world: Worlds, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EMBEDDINGS_KEY", raising=False)
    one = world(toml=hosted(service))
    offer = one.crib.select("where is the parcel")
    assert (offer.outcome, offer.tools) == (Outcome.UNAVAILABLE, ())
    with pytest.raises(ConfigError, match="EMBEDDINGS_KEY"):
        one.crib.tools()
    assert service.seen == []


def test_a_model_on_disk_is_in_force_by_its_path(world: Worlds) -> None:
    pytest.importorskip("onnxruntime", reason="toolcrib[quality] is not installed")
    one = world(toml=on_disk())
    offer = one.crib.select("refund an order")
    assert offer.outcome is not Outcome.UNAVAILABLE
    assert not offer.selection.degraded
    [file] = kept(one)
    assert file.name.startswith("onnx-model-")


def test_a_folder_that_is_not_there_is_told(world: Worlds, tmp_path: Path) -> None:
    one = world(toml=on_disk(tmp_path / "none"))
    assert one.crib.select("refund an order").outcome is Outcome.UNAVAILABLE
    with pytest.raises(ConfigError, match="no such folder"):
        one.crib.tools()


def test_i01_a_model_of_ones_own_says_nothing_of_hidden_tools(world: Worlds) -> None:
    pytest.importorskip("onnxruntime", reason="toolcrib[quality] is not installed")
    policy = 'permit (principal, action, resource) when { resource.server == "shop" };'
    hidden = [tool(f"refund_{n}", "open issue refund order weather city " * n) for n in range(1, 6)]
    small = world({"shop": SHOP}, toml=on_disk(), policy=policy)
    large = world({"shop": SHOP, "vault": hidden}, toml=on_disk(), policy=policy)
    for task in ("refund an order", "open issue", "weather in the city", "parcel"):
        mine, theirs = (one.crib.select(task, caller=caller()) for one in (small, large))
        assert [t.tool.tool_id for t in mine.tools] == [t.tool.tool_id for t in theirs.tools]
        assert mine.selection == theirs.selection
