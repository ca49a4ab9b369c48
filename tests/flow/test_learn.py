"""Learning from use, over the whole road: traces, a learned file, answers; and what it tells no caller (I1)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.flow.worlds import World, Worlds, caller, tool
from toolcrib import curation
from toolcrib.cli.main import app
from toolcrib.errors import ConfigError
from toolcrib.learn import LearnOptions, Report, learn
from toolcrib.retrieval.learning import Learned
from toolcrib.types import Caller, CallerKind, Code, JsonObject, ToolResult
from toolcrib.uses import read_log

OPEN = "permit (principal, action, resource);"
BY_ROLE = """
permit (principal, action, resource) when { resource.server_id == "shop" };
permit (principal, action, resource) when { resource.server_id == "vault" && principal.roles.contains("boss") };
"""
SHOP = [
    tool("send_invoice", "Send an invoice to a customer by mail."),
    tool("cancel_order", "Cancel an order and give the money back."),
    tool("track_parcel", "Tell where a parcel is."),
    tool("add_discount", "Add a discount to a product."),
    tool("list_customers", "List customers and their addresses."),
    tool("update_stock", "Set how many pieces of a product are in stock."),
    tool("open_ticket", "Open a support ticket for a customer."),
    tool("close_ticket", "Close a support ticket."),
]
VAULT = [tool("rotate_key", "Rotate the signing key."), tool("seal_ledger", "Seal the ledger of a month.")]
TOML = '[retrieval]\nconfidence_floor = 0.0\n[[tools]]\nmatch = "*"\nrisk = "read"\n[gate]\nduplicate_window_s = 0\n'
JARGON = {
    "shop.track_parcel": "wismo",
    "shop.cancel_order": "chargeback",
    "shop.update_stock": "recount",
    "shop.open_ticket": "escalate",
}
ENDINGS = ("for the lady from Leeds", "again please", "number 4711", "before noon", "for Mister Brown", "as always")
"""Each once per word and person: requests that differ and share what matters."""


def people(*roles: str) -> tuple[Caller, ...]:
    return tuple(caller(subject=name, roles=roles) for name in ("ann", "bob", "cleo"))


def asked(word: str, ending: str, subject: str = "") -> str:
    """A request that comes near to many tools, so that they are offered; only the first word tells which is meant."""
    return f"{word} the parcel order stock ticket {subject} {ending}"


def use(
    world: World, who: Sequence[Caller], *, words: dict[str, str] = JARGON, endings: Sequence[str] = ENDINGS
) -> None:
    """Everybody asks in the house's own words, and calls what they mean."""
    for ending in endings:
        for one in who:
            for tool_id, word in words.items():
                offer = world.crib.select(asked(word, ending, one.subject), caller=one, limit=10)
                assert tool_id in [chosen.tool.tool_id for chosen in offer.tools]
                assert world.call(tool_id, {}, caller=one).code is Code.OK


def learned(world: World, **options: object) -> tuple[Learned, Report]:
    return learn(
        world.crib.store,
        world.crib.pipeline(),
        since="2000-01-01T00:00:00.000000+00:00",
        offer_ttl_s=1_800.0,
        made=curation.now(),
        options=LearnOptions(**options),  # type: ignore[arg-type]
    )


def put_in_force(world: World, what: Learned) -> None:
    what.write(world.folder / "toolcrib.learned")
    config = world.folder / "toolcrib.toml"
    text = config.read_text(encoding="utf-8").replace("[retrieval]\n", '[retrieval]\nlearned = "toolcrib.learned"\n')
    config.write_text(text, encoding="utf-8")


def answer(world: World, task: str, who: Caller) -> object:
    """All that a caller is told, but for the trace's id."""
    offer = world.crib.select(task, caller=who)
    return offer.selection, offer.catalog_version, offer.policy_version, offer.index_version


def first(world: World, task: str, who: Caller) -> str:
    return world.crib.select(task, caller=who).tools[0].tool.tool_id


def test_what_a_house_calls_its_tools_is_learned_from_its_log(make_world: Worlds) -> None:
    world = make_world({"shop": SHOP}, toml=TOML, policy=OPEN)
    who = people()
    use(world, who)
    what, report = learned(world)
    (found,) = report.audiences
    assert (report.n_requests, report.n_uses, report.n_unused, report.n_unreadable) == (72, 72, 0, 0)
    assert found.kept and found.after[0] > found.before[0] and found.n_subjects == 3
    task = asked("wismo", "for the gentleman from York")
    before = world.crib.select(task, caller=who[0])
    put_in_force(world, what)
    after = world.crib.select(task, caller=who[0])
    assert after.tools[0].tool.tool_id == "shop.track_parcel" != before.tools[0].tool.tool_id
    assert (before.catalog_version, before.policy_version) == (after.catalog_version, after.policy_version)
    assert before.index_version != after.index_version
    assert world.crib.replay(after.trace_id).same


def test_nobody_else_sees_what_was_learned_over_tools_out_of_their_reach(make_world: Worlds) -> None:
    world = make_world({"shop": SHOP, "vault": VAULT}, toml=TOML, policy=BY_ROLE)
    bosses, clerk = people("boss"), caller(subject="dan")
    tasks = [asked(word, ending) for word in JARGON.values() for ending in ENDINGS] + ["seal the ledger", "rotate"]
    use(world, bosses)
    before = [answer(world, task, clerk) for task in tasks]
    what, report = learned(world)
    assert [found.n_tools for found in report.audiences if found.kept] == [len(SHOP) + len(VAULT)]
    boss_before = [answer(world, task, bosses[0]) for task in tasks]
    put_in_force(world, what)
    assert [answer(world, task, clerk) for task in tasks] == before
    assert [answer(world, task, bosses[0]) for task in tasks] != boss_before


def test_a_part_is_the_same_whatever_those_with_more_tools_asked(make_world: Worlds) -> None:
    alone, beside = (make_world({"shop": SHOP, "vault": VAULT}, toml=TOML, policy=BY_ROLE) for _ in range(2))
    use(alone, people())
    use(beside, people())
    others = {"shop.close_ticket": "wismo", "shop.track_parcel": "chargeback"}
    use(beside, people("boss"), words=others)
    (part,) = learned(alone)[0].parts
    parts = {len(one.tools): one.digest for one in learned(beside, force=True)[0].parts}
    assert parts[len(SHOP)] == part.digest and len(SHOP) + len(VAULT) in parts


def test_those_with_more_tools_profit_from_requests_of_those_with_fewer(make_world: Worlds) -> None:
    world = make_world({"shop": SHOP, "vault": VAULT}, toml=TOML, policy=BY_ROLE)
    use(world, people())
    put_in_force(world, learned(world)[0])
    assert first(world, asked("wismo", "for the gentleman from York"), people("boss")[0]) == "shop.track_parcel"


def test_a_part_counts_for_its_tenant_alone(make_world: Worlds) -> None:
    world = make_world({"shop": SHOP}, toml=TOML, policy=OPEN)
    mine = tuple(caller(subject=name, tenant="acme") for name in ("ann", "bob", "cleo"))
    other = caller(subject="eve", tenant="other")
    use(world, mine)
    before = answer(world, asked("wismo", "before noon"), other)
    what, _ = learned(world)
    put_in_force(world, what)
    assert answer(world, asked("wismo", "before noon"), other) == before
    assert first(world, asked("wismo", "before noon"), mine[0]) == "shop.track_parcel"
    pooled, _ = learned(world, across_tenants=True)
    pooled.write(world.folder / "toolcrib.learned")
    assert first(world, asked("wismo", "before noon"), other) == "shop.track_parcel"


def test_a_changed_tool_ends_a_part_and_a_removed_one_the_requests_made_beside_it(make_world: Worlds) -> None:
    world = make_world({"shop": SHOP}, toml=TOML, policy=OPEN)
    who = people()
    use(world, who)
    put_in_force(world, learned(world)[0])
    task = asked("wismo", "for the gentleman from York")
    assert first(world, task, who[0]) == "shop.track_parcel"
    world.write("shop", [*SHOP[:-1], tool("close_ticket", "Close a ticket of support for good.")])
    world.refresh()
    world.crib.approve(None, reviewer="tests")
    view = world.crib.view(who[0])
    assert len(view.tools) == len(SHOP)
    pipeline = world.crib.pipeline()
    reach = {one.tool_id: one.digest for one in view.tools}
    assert pipeline.learned.for_reach(reach, tenant="", model_id=pipeline.index.model_id) is None  # type: ignore[union-attr]
    assert learned(world)[1].audiences[0].kept  # the others are as they were: learned anew
    world.write("shop", SHOP[:-1])
    world.refresh()
    what, report = learned(world)
    assert what.parts == () and report.n_left_out == report.n_uses == 72


def test_too_few_people_or_requests_leave_nothing(make_world: Worlds) -> None:
    world = make_world({"shop": SHOP}, toml=TOML, policy=OPEN)
    use(world, people()[:1])
    what, report = learned(world, min_requests=10)
    assert what.parts == () and "people" in report.audiences[0].why
    assert learned(world, min_subjects=1, min_requests=10, force=True)[0].parts
    assert learned(world, min_subjects=1, min_requests=500, force=True)[0].parts == ()


def test_only_calls_that_ran_after_an_offer_to_the_same_caller_count(make_world: Worlds) -> None:
    async def sometimes(name: str, arguments: JsonObject) -> ToolResult:
        done = Code.TOOL_ERROR if arguments.get("fail") else Code.OK
        return ToolResult(code=done, content=(), reached_server=True)

    world = make_world({"shop": SHOP}, toml=TOML, policy=OPEN, handler=sometimes)
    ann, bob = people()[:2]
    for who, task in ((ann, asked("wismo", "please")), (bob, asked("recount", "please"))):
        world.crib.select(task, caller=who, limit=8)
    world.call("shop.track_parcel", {"fail": True}, caller=ann)
    world.call("shop.cancel_order", caller=ann)
    world.call("shop.track_parcel", caller=ann)
    world.call("shop.track_parcel", caller=ann)
    world.call("shop.add_discount", caller=caller(subject="dan"))
    log = read_log(world.crib.store, since="2000-01-01T00:00:00+00:00", offer_ttl_s=1_800.0)
    (use_,) = log.uses
    assert [row[0] for row in use_.called] == ["shop.cancel_order", "shop.track_parcel"]
    assert use_.text == asked("wismo", "please")
    assert (log.n_requests, log.n_unused) == (2, 1)
    late = read_log(world.crib.store, since="2000-01-01T00:00:00+00:00", offer_ttl_s=0.0)
    assert late.uses == [] and late.n_unused == 2
    tomorrow = (datetime.fromisoformat(use_.at) + timedelta(days=1)).isoformat()
    assert read_log(world.crib.store, since=tomorrow, offer_ttl_s=1_800.0).n_requests == 0


def test_a_call_belongs_to_the_latest_request_that_offered_its_tool(make_world: Worlds) -> None:
    world = make_world({"shop": SHOP}, toml=TOML, policy=OPEN)
    (ann, *_) = people()
    world.crib.select("where is a parcel", caller=ann, limit=8)
    world.crib.select("where is that parcel", caller=ann, limit=8)
    world.call("shop.track_parcel", caller=ann)
    log = read_log(world.crib.store, since="2000-01-01T00:00:00+00:00", offer_ttl_s=1_800.0)
    assert [one.text for one in log.uses] == ["where is that parcel"]


def test_replay_says_that_something_else_was_learned_since(make_world: Worlds) -> None:
    world = make_world({"shop": SHOP}, toml=TOML, policy=OPEN)
    who = people()
    use(world, who)
    task = asked("wismo", "for the gentleman from York")
    without = world.crib.select(task, caller=who[0]).trace_id
    put_in_force(world, learned(world)[0])
    with_it = world.crib.select(task, caller=who[0]).trace_id
    then = world.crib.replay(without)
    assert then.same and then.others == ("learned",)
    other, _ = learned(world, seed=7, force=True)
    other.write(world.folder / "toolcrib.learned")
    gone = world.crib.replay(with_it)
    assert not gone.same and gone.differs == ("learned",) and not gone.compared


@pytest.mark.parametrize("content", [None, b"", b"TCRIBIDX nonsense"], ids=["missing", "empty", "damaged"])
def test_a_file_that_cannot_be_used_costs_what_was_learned_and_nothing_else(
    make_world: Worlds, content: bytes | None
) -> None:
    world = make_world({"shop": SHOP}, toml=TOML, policy=OPEN)
    (ann, *_) = people()
    before = answer(world, "wismo", ann)
    put_in_force(world, Learned(parts=()))
    path = world.folder / "toolcrib.learned"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert answer(world, "wismo", ann) == before
    assert world.crib.pipeline().learned.digest == ""


def test_no_request_stands_in_the_file(make_world: Worlds) -> None:
    world = make_world({"shop": SHOP}, toml=TOML, policy=OPEN)
    use(world, people())
    learned(world)[0].write(world.folder / "file")
    raw = (world.folder / "file").read_bytes()
    for told in (b"wismo", b"Leeds", b"ann", b"bob"):
        assert told not in raw


@pytest.mark.parametrize("options", [{"holdout": 0.0}, {"holdout": 0.9}, {"min_requests": 0}, {"min_subjects": 0}])
def test_options_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        LearnOptions(**options)  # type: ignore[arg-type]


def test_search_by_words_alone_has_nothing_to_learn(make_world: Worlds, tmp_path: Path) -> None:
    toml = TOML.replace("[retrieval]\n", '[retrieval]\nembedder = "none"\n')
    world = make_world({"shop": SHOP}, toml=toml, policy=OPEN)
    with pytest.raises(ConfigError):
        learned(world)


def test_the_command_writes_a_file_reports_and_says_how_to_use_it(make_world: Worlds) -> None:
    world = make_world({"shop": SHOP}, toml=TOML, policy=OPEN)
    at = ["-C", str(world.folder), "learn"]
    nothing = CliRunner().invoke(app, [*at, "--json"])
    assert nothing.exit_code == 1 and not (world.folder / "toolcrib.learned").exists()
    assert json.loads(nothing.stdout)["file"] == ""
    use(world, people())
    told = CliRunner().invoke(app, [*at, "--out", "taught"])
    assert told.exit_code == 0 and "recall@1" in told.stdout and 'learned = "taught"' in told.stderr
    assert "wismo" not in told.output
    done = CliRunner().invoke(app, [*at, "--json", "--since", "2000-01-01"])
    body = json.loads(done.stdout)
    assert done.exit_code == 0 and body["digest"] == Learned.read(world.folder / "toolcrib.learned").digest
    assert body["audiences"][0]["kept"] and body["audiences"][0]["n_learned"] + body["audiences"][0]["n_held_out"] == 72
    assert isinstance(CliRunner().invoke(app, [*at, "--since", "soon"]).exception, ConfigError)


def test_too_little_is_told_with_how_much_there_is_how_much_it_takes_and_what_to_do(make_world: Worlds) -> None:
    world = make_world({"shop": SHOP}, toml=TOML, policy=OPEN)
    assert "no request in this time" in learned(world)[1].lacking[0]
    world.crib.select("where is the parcel", caller=people()[0])
    assert "after none of 1 requests a call counts" in learned(world)[1].lacking[0]
    use(world, people()[:1], endings=ENDINGS[:2])
    report = learned(world)[1]
    assert "8 different requests of 1 people" in report.lacking[0]
    assert "takes about 25 of 2 people, 20% of them kept aside" in report.lacking[0]
    assert "--since" in report.lacking[1] and "--min-subjects 1" in report.lacking[2]
    assert report.audiences[0].why == "6 different requests to learn from, 20 are needed"
    done = CliRunner().invoke(app, ["-C", str(world.folder), "learn"])
    assert done.exit_code == 1
    assert "8 different requests of 1 people" in done.output and "nothing was written" in done.output


def test_enough_that_teaches_nothing_lacks_nothing(make_world: Worlds) -> None:
    world = make_world({"shop": SHOP}, toml=TOML, policy=OPEN)
    use(world, people())
    assert learned(world)[1].lacking == ()


def test_a_file_that_cannot_be_read_is_told_once(make_world: Worlds) -> None:
    """In a process of its own: what is logged goes to standard error where nobody else listens."""
    world = make_world({"shop": SHOP}, toml=TOML.replace("[retrieval]", '[retrieval]\nlearned = "gone"'), policy=OPEN)
    line = [sys.executable, "-m", "toolcrib.cli", "-C", str(world.folder), "learn"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("searching without what was learned from use") == 1


def test_one_person_through_several_agents_is_one_person(make_world: Worlds) -> None:
    world = make_world({"shop": SHOP}, toml=TOML, policy=OPEN)
    ann = caller(subject="ann")
    agents = [
        replace(ann, subject=name, kind=CallerKind.AGENT, on_behalf_of="ann", acting_for=ann)
        for name in ("bot-1", "bot-2", "bot-3")
    ]
    use(world, agents)
    what, report = learned(world, force=True)
    assert what.parts == () and report.audiences[0].n_subjects == 1 and "people" in report.audiences[0].why


def test_a_tenant_that_is_called_as_all_are_is_refused(make_world: Worlds) -> None:
    world = make_world({"shop": SHOP}, toml=TOML, policy=OPEN)
    use(world, [caller(subject=name, tenant="*") for name in ("ann", "bob")], endings=ENDINGS[:1])
    with pytest.raises(ConfigError, match=r"a tenant is called \*"):
        learned(world)
    assert learned(world, across_tenants=True)[1].n_uses == 8
