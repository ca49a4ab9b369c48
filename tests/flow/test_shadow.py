"""Shadow mode: the candidate is tried beside what is answered, and nothing of it reaches a caller (I1)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from tests.flow.worlds import World, Worlds, caller, tool
from toolcrib import crib as crib_module
from toolcrib import shadow as shadow_module
from toolcrib.candidate import tried_settings
from toolcrib.crib import Crib
from toolcrib.errors import ConfigError
from toolcrib.pipeline import Pipeline
from toolcrib.settings import load_settings
from toolcrib.shadow import is_drawn
from toolcrib.types import Caller, ShadowRecord

TEXT = {"type": "string"}
SHOP = {
    "shop": [
        tool("get_order", "Look up one order by its number.", properties={"order_id": TEXT}),
        tool("issue_refund", "Return money to a customer for an order.", properties={"order_id": TEXT}),
        tool("delete_order", "Delete an order for good.", properties={"order_id": TEXT}),
    ],
    "mail": [tool("send_mail", "Send a mail to a customer.", properties={"to": TEXT, "text": TEXT})],
}
READ = '[[tools]]\nmatch = "*"\nrisk = "read"\n'
OPEN = "permit (principal, action, resource);"
NO_DELETE = 'permit (principal, action, resource) unless { resource == Tool::"shop.delete_order" };'
SHADOW = '[shadow]\ncandidate = "candidate.toml"\n'
TASKS = ("delete an order", "return money for an order", "send a mail", "look up an order", "", "play the piano")
ANN, BOB = caller(subject="ann"), caller(subject="bob", tenant="acme", roles=["lead"])


@pytest.fixture
def one(make_world: Worlds) -> World:
    made = make_world(SHOP, toml=READ + SHADOW, policy=OPEN)
    candidate(made, '[crib]\npolicy = "stricter.cedar"\n')
    (made.folder / "stricter.cedar").write_text(NO_DELETE, encoding="utf-8")
    return made


def candidate(world: World, text: str) -> None:
    (world.folder / "candidate.toml").write_text(text, encoding="utf-8")


def shadows(world: World, *, n: int = 0) -> list[ShadowRecord]:
    """The records so far, oldest first; nothing may still wait."""
    assert world.crib.shadow.drain(timeout_s=60)
    found = list(world.crib.store.each_shadow(since="", limit=1_000))[::-1]
    assert not n or len(found) == n
    return found


def seen(world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every byte that callers get for all tasks: answers, and the callers' views of their traces."""
    numbers = iter(range(1_000))
    monkeypatch.setattr(crib_module.uuid, "uuid4", lambda: type("Id", (), {"hex": f"{next(numbers):032x}"}))
    told: list[Any] = []
    for who in (ANN, BOB):
        for task in TASKS:
            offer = world.crib.select(task, caller=who, limit=2)
            views = [[r.stage, r.caller_view] for r in world.crib.trace(offer.trace_id).records]
            told += [offer.to_dict(), views]
        told.append([t.tool_id for t in world.crib.tools(who)])
        done = world.call("shop.get_order", {"order_id": "1"}, caller=who)
        told.append(done.to_dict())
    return json.dumps(told, sort_keys=True)


# --- what is recorded


def test_what_the_candidate_would_have_answered_stands_beside_the_trace(one: World) -> None:
    offer = one.crib.select("delete an order for good", caller=ANN)
    (found,) = shadows(one)
    assert (found.trace_id, found.state, found.fault, found.n_dropped) == (offer.trace_id, "compared", "", 0)
    assert found.present is not None and found.candidate is not None
    assert found.present.tool_ids == tuple(chosen.tool.tool_id for chosen in offer.tools)
    assert "shop.delete_order" in found.present.tool_ids
    assert "shop.delete_order" not in found.candidate.tool_ids
    assert (found.lost, found.gained, found.n_lost) == (("shop.delete_order",), (), 1)
    assert found.present.policy_version != found.candidate.policy_version
    assert found.present.catalog_version == found.candidate.catalog_version
    assert found.present.tokens == offer.selection.tokens


def test_a_record_holds_no_words_of_the_task_and_no_definition(one: World) -> None:
    one.crib.select("delete an order, my password is hunter2", caller=ANN)
    (found,) = shadows(one)
    text = json.dumps(asdict(found))
    assert "hunter2" not in text
    assert "for good" not in text


def test_tool_rules_ceilings_and_retrieval_of_the_candidate_are_tried(one: World) -> None:
    candidate(one, '[selection]\nlimit = 1\n[retrieval]\nembedder = "none"\n[[tools]]\nmatch = "*"\nenabled = false\n')
    one.crib.select("delete an order", caller=ANN)
    shadows(one, n=1)
    candidate(one, '[selection]\nlimit = 1\n[retrieval]\nembedder = "none"\n')
    one.crib.select("delete an order", caller=ANN)
    one.crib.select("delete an order", caller=ANN, limit=2)
    (closed, short, asked) = shadows(one)
    assert closed.candidate is not None and short.candidate is not None and asked.candidate is not None
    assert (closed.candidate.outcome, closed.n_lost) == ("no_match", 4)
    assert short.present is not None and short.present.index_version != short.candidate.index_version
    assert len(short.present.tool_ids) > len(short.candidate.tool_ids) == 1
    assert len(asked.candidate.tool_ids) == 2  # a ceiling that the caller gave holds for both
    assert len({closed.candidate_id, short.candidate_id}) == 2


def test_what_a_candidate_may_not_change_is_named_and_has_no_effect(one: World) -> None:
    text = '[crib]\nname = "x"\nstore = "elsewhere"\n[identity.local]\nsubject = "root"\n[selection]\nlimit = 3\n'
    candidate(one, text + '[[servers]]\nid = "evil"\ntransport = "file"\npath = "x.json"\n')
    tried = tried_settings(load_settings(one.folder))
    assert tried.taken == ("selection",)
    assert set(tried.ignored) == {"crib.name", "crib.store", "identity", "servers"}
    present = load_settings(one.folder)
    assert (tried.settings.store, tried.settings.servers) == (present.store, present.servers)
    assert (tried.settings.identity, tried.settings.selection.limit) == (present.identity, 3)


@pytest.mark.parametrize(("given", "beside"), [("file:key.txt", True), ("env:KEY", False)])
def test_a_key_file_of_a_candidate_lies_beside_it(one: World, given: str, beside: bool) -> None:
    folder = one.folder / "tried"
    folder.mkdir()
    text = '[retrieval]\nembedder = "model"\n[retrieval.model]\nkind = "openai"\nname = "small"\n'
    text += f'url = "https://models.example/v1"\napi_key = "{given}"\n'
    (folder / "candidate.toml").write_text(text, encoding="utf-8")
    config = one.folder / "toolcrib.toml"
    changed = config.read_text(encoding="utf-8").replace('"candidate.toml"', '"tried/candidate.toml"')
    config.write_text(changed, encoding="utf-8")
    model = tried_settings(load_settings(one.folder)).settings.retrieval.model
    assert model is not None and model.api_key is not None
    expected = given.replace("key.txt", str(folder / "key.txt")) if beside else given
    assert model.api_key.reference == expected


def test_the_crib_itself_is_no_candidate(one: World) -> None:
    (one.folder / "toolcrib.toml").write_text('[shadow]\ncandidate = "toolcrib.toml"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="own file"):
        tried_settings(load_settings(one.folder))


def test_a_shadow_without_a_candidate_is_refused_unless_everything_is_offered(make_world: Worlds) -> None:
    with pytest.raises(ConfigError, match="names no candidate"):
        make_world(SHOP, toml="[shadow]\nshare = 0.5\n")


def test_a_changed_candidate_counts_from_the_next_select_on(one: World) -> None:
    one.crib.select("delete an order", caller=ANN)
    shadows(one)
    (one.folder / "stricter.cedar").write_text(OPEN, encoding="utf-8")
    one.crib.select("delete an order", caller=ANN)
    before, after = shadows(one)
    assert (before.n_lost, after.n_lost) == (1, 0)
    assert before.candidate_id != after.candidate_id


# --- which ones are tried


def test_the_same_share_of_traces_is_drawn_each_time() -> None:
    ids = [f"{number:032x}" for number in range(4_000)]
    drawn = [one for one in ids if is_drawn(one, 0.25)]
    assert drawn == [one for one in ids if is_drawn(one, 0.25)]
    assert 900 < len(drawn) < 1_100
    assert not any(is_drawn(one, 0.0) for one in ids)
    assert all(is_drawn(one, 1.0) for one in ids)
    assert set(drawn) <= {one for one in ids if is_drawn(one, 0.5)}  # a larger share keeps what was in the smaller


def test_with_no_share_nothing_is_tried(make_world: Worlds) -> None:
    world = make_world(SHOP, toml=READ + SHADOW + "share = 0.0\n")
    candidate(world, "[selection]\nlimit = 1\n")
    world.crib.select("delete an order", caller=ANN)
    assert shadows(world) == []


# --- nothing reaches the caller


def fails(*_args: Any, **_more: Any) -> Any:
    raise RuntimeError("secret words of a fault")


@pytest.fixture
def held() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize("how", ["on", "failing", "broken", "missing", "slow"])
def test_i01_callers_see_the_same_bytes_with_shadow_off_on_failing_and_slow(
    make_world: Worlds, monkeypatch: pytest.MonkeyPatch, held: threading.Event, how: str
) -> None:
    off = make_world(SHOP, toml=READ, policy=OPEN)
    on = make_world(SHOP, toml=READ + SHADOW, policy=OPEN)
    candidate(on, '[crib]\npolicy = "stricter.cedar"\n[selection]\nlimit = 1\n')
    (on.folder / "stricter.cedar").write_text(NO_DELETE if how != "broken" else "permit oops", encoding="utf-8")
    if how == "missing":
        (on.folder / "candidate.toml").unlink()
    expected = seen(off, monkeypatch)
    if how == "failing":
        monkeypatch.setattr(shadow_module.Candidate, "ready", fails)
    if how == "slow":  # until the test is over: whoever waited for it would never come back
        monkeypatch.setattr(shadow_module.Candidate, "ready", lambda *_args: held.wait() and fails())
    assert seen(on, monkeypatch) == expected
    held.set()
    states = {found.state for found in shadows(on, n=2 * len(TASKS))}
    assert states == ({"compared"} if how == "on" else {"failed"})


@pytest.mark.parametrize(("how", "fault"), [("missing", "ConfigError"), ("policy", "PolicySyntaxError")])
def test_a_candidate_that_cannot_answer_is_on_record_with_its_fault(one: World, how: str, fault: str) -> None:
    if how == "missing":
        (one.folder / "candidate.toml").unlink()
    else:
        (one.folder / "stricter.cedar").write_text("permit oops", encoding="utf-8")
    assert one.crib.select("delete an order", caller=ANN).tools
    (found,) = shadows(one)
    assert (found.state, found.candidate) == ("failed", None)
    assert found.fault.startswith(fault)


def test_a_fault_nobody_thought_of_is_on_record_without_its_words(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow_module.Candidate, "ready", fails)
    assert one.crib.select("delete an order", caller=ANN).tools
    (found,) = shadows(one)
    assert (found.state, found.fault) == ("failed", "RuntimeError")


def test_what_is_too_much_is_dropped_and_counted(
    one: World, monkeypatch: pytest.MonkeyPatch, held: threading.Event
) -> None:
    begun = threading.Event()
    ready = shadow_module.Candidate.ready

    def waits(self: Any, present: Any) -> Any:
        begun.set()
        held.wait()
        return ready(self, present)

    monkeypatch.setattr(shadow_module.Candidate, "ready", waits)
    one.crib.select("delete an order", caller=ANN)
    assert begun.wait(60)
    n_more = shadow_module.MAX_WAITING + 5
    for _ in range(n_more):
        assert one.crib.select("delete an order", caller=ANN).tools
    held.set()
    found = shadows(one, n=1 + shadow_module.MAX_WAITING)
    assert sum(record.n_dropped for record in found) == 5


def test_what_was_dropped_last_is_counted_when_the_crib_is_closed(
    one: World, monkeypatch: pytest.MonkeyPatch, held: threading.Event
) -> None:
    shadow = one.crib.shadow
    monkeypatch.setattr(shadow, "_max_waiting", 0)
    one.crib.select("delete an order", caller=ANN)
    monkeypatch.setattr(shadow, "_max_waiting", 1)
    one.crib.select("delete an order", caller=ANN)
    assert shadow.drain(timeout_s=60)
    monkeypatch.setattr(shadow, "_max_waiting", 0)
    one.crib.select("delete an order", caller=ANN)
    shadow.close(within_s=60)
    assert [(r.state, r.n_dropped) for r in one.crib.store.each_shadow(since="", limit=9)] == [
        ("dropped", 1),
        ("compared", 1),
    ]


def test_nothing_is_written_after_the_crib_was_closed(
    one: World, monkeypatch: pytest.MonkeyPatch, held: threading.Event
) -> None:
    monkeypatch.setattr(shadow_module.Candidate, "ready", lambda *_args: held.wait() and fails())
    one.crib.select("delete an order", caller=ANN)
    one.crib.shadow.close(within_s=0.0)
    closed = list(one.crib.store.each_shadow(since="", limit=9))
    held.set()
    assert one.crib.select("delete an order", caller=ANN).tools
    assert one.crib.shadow.drain(timeout_s=60)  # its thread has come to an end
    assert list(one.crib.store.each_shadow(since="", limit=9)) == closed


def test_what_is_left_at_the_end_counts_as_dropped(
    one: World, monkeypatch: pytest.MonkeyPatch, held: threading.Event
) -> None:
    begun = threading.Event()
    monkeypatch.setattr(shadow_module.Candidate, "ready", lambda *_args: begun.set() or (held.wait() and fails()))
    one.crib.select("delete an order", caller=ANN)
    assert begun.wait(60)
    for _ in range(2):
        one.crib.select("delete an order", caller=ANN)
    one.crib.shadow.close(within_s=0.0)
    one.crib.shadow.close(within_s=0.0)
    found = [(record.state, record.n_dropped) for record in one.crib.store.each_shadow(since="", limit=9)]
    assert found == [("dropped", 3)]


def test_a_broken_candidate_is_told_to_the_operator_once(make_world: Worlds) -> None:
    made = make_world(SHOP, toml=READ + SHADOW, policy=OPEN)
    candidate(made, '[crib]\nname = "x"\n[selection]\nlimit = 1\n')
    told: list[str] = []
    with Crib.open(made.folder, connectors=made.servers, on_progress=told.append) as crib:
        crib.shadow.warm(crib.settings)
        assert crib.shadow.drain(timeout_s=60)
        assert [line for line in told if "have no effect" in line] == [
            "shadow: the candidate's crib.name have no effect and are not tried"
        ]
        candidate(made, "[selection]\nlimit = 0\n")
        for _ in range(3):
            assert crib.select("delete an order", caller=ANN).tools
        assert crib.shadow.drain(timeout_s=60)
        assert len([line for line in told if "cannot answer: ConfigError" in line]) == 1
        assert next(crib.store.each_shadow(since="", limit=9)).state == "failed"


def test_an_operator_who_cannot_be_told_ends_nothing(
    make_world: Worlds, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = make_world(SHOP, toml=READ + SHADOW, policy=OPEN)
    (made.folder / "candidate.toml").write_text("[selection]\nlimit = 0\n", encoding="utf-8")
    monkeypatch.setattr(made.crib.shadow, "_on_progress", fails)
    for _ in range(2):
        assert made.crib.select("delete an order", caller=ANN).tools
    assert [record.state for record in shadows(made, n=2)] == ["failed", "failed"]
    assert "secret words" not in caplog.text


# --- everything in reach


@pytest.fixture
def generous(make_world: Worlds) -> World:
    return make_world(SHOP, toml=READ + '[shadow]\npresent = "all"\n[selection]\nlimit = 2\n', policy=NO_DELETE)


def test_everything_in_reach_is_offered_and_the_crib_itself_is_tried(generous: World) -> None:
    offer = generous.crib.select("send a mail", caller=ANN)
    assert [chosen.tool.tool_id for chosen in offer.tools] == ["mail.send_mail", "shop.get_order", "shop.issue_refund"]
    assert offer.outcome == "selected"
    assert offer.selection.tokens == sum(chosen.tokens for chosen in offer.tools) == offer.selection.token_budget
    (found,) = shadows(generous)
    assert found.present is not None and found.candidate is not None
    assert found.present.tool_ids == tuple(chosen.tool.tool_id for chosen in offer.tools)
    assert found.candidate.tool_ids[0] == "mail.send_mail"
    assert len(found.candidate.tool_ids) <= 2
    assert found.candidate.tokens < found.present.tokens
    assert (found.n_gained, found.n_lost) == (0, 0)


def test_ceilings_that_the_caller_gave_hold_when_everything_is_offered(generous: World) -> None:
    offer = generous.crib.select("send a mail", caller=ANN, limit=1)
    assert ([t.tool.tool_id for t in offer.tools], offer.selection.limit) == (["mail.send_mail"], 1)
    assert {(d.tool_id, d.reason) for d in offer.selection.dropped} == {
        ("shop.get_order", "limit"),
        ("shop.issue_refund", "limit"),
    }
    budget = generous.crib.select("send a mail", caller=ANN).tools[0].tokens + 1
    offer = generous.crib.select("send a mail", caller=ANN, token_budget=budget)
    assert [t.tool.tool_id for t in offer.tools] == ["mail.send_mail"]
    assert offer.selection.tokens <= budget == offer.selection.token_budget


def test_nothing_in_reach_is_no_match(make_world: Worlds) -> None:
    world = make_world(SHOP, toml=READ + '[shadow]\npresent = "all"\n', policy="")
    (world.folder / "none.cedar").write_text("", encoding="utf-8")
    config = world.folder / "toolcrib.toml"
    text = config.read_text(encoding="utf-8").replace('name = "test"', 'name = "test"\npolicy = "none.cedar"')
    config.write_text(text, encoding="utf-8")
    assert (world.crib.select("send a mail", caller=ANN).outcome, world.crib.tools(ANN)) == ("no_match", ())


@pytest.mark.parametrize("who", [ANN, BOB], ids=["ann", "bob"])
def test_an_answer_with_everything_is_replayed_as_such_and_explained(generous: World, who: Caller) -> None:
    offer = generous.crib.select("send a mail", caller=who, limit=2)
    found = generous.crib.replay(offer.trace_id)
    assert (found.same, found.others) == (True, ())
    assert generous.crib.explain(offer.trace_id, tool_id="shop.delete_order").code == "not_permitted"
    assert generous.crib.explain(offer.trace_id, tool_id="shop.issue_refund").code == "limit"
    assert generous.crib.explain(offer.trace_id, tool_id="shop.get_order").code == "not_chosen"


def test_the_pipeline_is_asked_once_for_each_answer(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    select = Pipeline.select

    def counted(self: Pipeline, *args: Any, **more: Any) -> Any:
        threads.append(threading.current_thread().name)
        return select(self, *args, **more)

    monkeypatch.setattr(Pipeline, "select", counted)
    one.crib.select("delete an order", caller=ANN)
    shadows(one)
    assert sorted(threads) == sorted([threading.current_thread().name, "toolcrib-shadow"])
