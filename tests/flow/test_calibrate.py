"""A crib's own calibration: fitted on cases, put in force by one line of settings, told honestly, replayed."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.flow.worlds import World, Worlds, caller, tool
from toolcrib.calibrate import Known, calibrate, floor_for, floor_in_force, known_of
from toolcrib.cli.main import app
from toolcrib.errors import ConfigError, RetrievalError
from toolcrib.evals.cases import Case
from toolcrib.retrieval.calibration import Calibration
from toolcrib.retrieval.confidence import basis_of
from toolcrib.types import Channel, Hit, Outcome, Ranking, Stage

OFFICE = {
    "office": [
        tool("get_order", "Look up one order by its number."),
        tool("issue_refund", "Return money to a customer for an order."),
        tool("book_room", "Reserve a meeting room for a time."),
        tool("translate_text", "Translate a text into another language."),
    ]
}
DONE = {
    "office.get_order": ["look up order {}", "find the order with number {}", "show me order {}"],
    "office.issue_refund": ["return the money for order {}", "refund customer {}", "pay customer {} back"],
    "office.book_room": ["reserve a room at {}", "book a meeting room for {}", "room for a meeting at {}"],
}
UNDONE = [
    "knit a scarf for my nephew",
    "which vaccinations does my puppy need",
    "tune the piano in the living room",
    "who won the chess olympiad in 1972",
    "teach me three chords on the ukulele",
    "plan a hike with an overnight stay",
    "order a pair of running shoes",
    "recommend a novel set in Lisbon",
    "grow tomatoes on a balcony",
    "what is a good name for a goldfish",
]


def rows() -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for tool_id, phrases in DONE.items():
        for number, phrase in enumerate(phrases * 3):
            task = phrase.format(10 + number)
            found.append({"id": f"{tool_id}-{number}", "task": task, "expect": [[tool_id]]})
    return found + [{"id": f"none-{n}", "task": task, "expect": None} for n, task in enumerate(UNDONE)]


def made(folder: Path, *words: str, code: int = 0) -> dict[str, object]:
    text = "".join(json.dumps(row) + "\n" for row in rows())
    (folder / "cases.jsonl").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["-C", str(folder), "calibrate", "cases.jsonl", "--json", *words])
    assert done.exit_code == code, (done.output, done.exception)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def put_in_force(one: World, line: str = 'calibration = "toolcrib.calibration.json"') -> None:
    config = one.folder / "toolcrib.toml"
    config.write_text(config.read_text(encoding="utf-8") + f"\n[retrieval]\n{line}\n", encoding="utf-8")


def confidence_of(one: World, trace_id: str) -> float:
    record = one.crib.trace(trace_id).record(Stage.RETRIEVAL)
    assert record is not None
    return float(record.operator_view["confidence"])


def test_cases_become_a_file_that_one_line_puts_in_force_and_a_replay_names(make_world: Worlds) -> None:
    one = make_world(OFFICE)
    before = one.crib.select("look up order 12")
    told = made(one.folder)
    assert (told["report"]["n_answerable"], told["report"]["n_unanswerable"]) == (27, 10)  # type: ignore[index]
    assert told["report"]["auroc"] > 0.9  # type: ignore[index]
    kept = Calibration.read(one.folder / "toolcrib.calibration.json")

    put_in_force(one)
    options = one.crib.pipeline().options
    assert (options.calibration, options.confidence_floor) == (kept, kept.floor)
    after = one.crib.select("look up order 12")
    assert [found.tool.tool_id for found in after.tools][:1] == ["office.get_order"]
    told_before, told_after = (confidence_of(one, trace_id) for trace_id in (before.trace_id, after.trace_id))
    assert told_after == pytest.approx(kept.of(told_before), abs=1e-6)
    assert one.crib.select("knit a scarf for my nephew").outcome is Outcome.NO_MATCH
    replayed = one.crib.replay(before.trace_id)
    assert (replayed.same, replayed.others) == (True, ("options",))

    (one.folder / "toolcrib.calibration.json").unlink()  # what it said then is remembered with the options
    again = one.crib.replay(after.trace_id)
    assert (again.same, again.others) == (True, ("options",))


def test_a_floor_of_the_settings_counts_before_the_fitted_one(make_world: Worlds) -> None:
    one = make_world(OFFICE)
    made(one.folder)
    put_in_force(one, 'calibration = "toolcrib.calibration.json"\nconfidence_floor = 0.9')
    assert one.crib.pipeline().options.confidence_floor == 0.9


@pytest.mark.parametrize("text", ["", "{}", '{"format": "toolcrib-calibration/1", "slope": -1}'], ids=["no", "no", "-"])
def test_a_file_that_cannot_be_used_leaves_the_built_in_floor(make_world: Worlds, text: str) -> None:
    one = make_world(OFFICE)
    (one.folder / "toolcrib.calibration.json").write_text(text, encoding="utf-8")
    put_in_force(one)
    assert one.crib.pipeline().options.calibration is None
    assert one.crib.select("look up order 12").outcome is Outcome.SELECTED


def test_a_calibration_of_another_model_is_not_used(make_world: Worlds) -> None:
    one = make_world(OFFICE)
    made(one.folder)
    put_in_force(one, 'calibration = "toolcrib.calibration.json"\nembedder = "none"')
    assert one.crib.pipeline().options.calibration is None


def test_every_caller_gets_the_same_map(make_world: Worlds) -> None:
    one = make_world(OFFICE)
    made(one.folder)
    put_in_force(one)
    pipeline = one.crib.pipeline()
    views = [pipeline.view(caller(subject=name), Channel.LIBRARY) for name in ("ann", "bob")]
    assert {view.version for view in views} == {views[0].version}
    assert pipeline.options.calibration is not None


def test_cases_that_their_caller_cannot_answer_say_nothing(make_world: Worlds) -> None:
    one = make_world(OFFICE)
    gone = Case(case_id="gone", task="print the letter", expect=(frozenset({"office.print_letter"}),))
    known, n_left_out = known_of(one.crib, [gone], name="cases")
    assert (known, n_left_out) == ((), 1)


def test_too_few_requests_are_refused_with_what_to_do(make_world: Worlds) -> None:
    one = make_world(OFFICE)
    (one.folder / "few.jsonl").write_text('{"id": "a", "task": "order", "expect": null}\n', encoding="utf-8")
    done = CliRunner().invoke(app, ["-C", str(one.folder), "calibrate", "few.jsonl"])
    assert isinstance(done.exception, ConfigError)
    assert "30 requests" in done.exception.what
    assert "eval init" in str(done.exception)
    assert not (one.folder / "toolcrib.calibration.json").exists()
    assert "8 more that a tool fits, 7 more that none fits, 29 more in all" in str(done.exception)
    drafts = '{"id": "%d", "task": "order", "expect": ["office.get_order"], "tags": ["draft", "direct"]}\n'
    (one.folder / "drafts.jsonl").write_text("".join(drafts % n for n in range(40)), encoding="utf-8")
    drafted = CliRunner().invoke(app, ["-C", str(one.folder), "calibrate", "drafts.jsonl"])
    assert isinstance(drafted.exception, ConfigError)
    assert "40 of 40 cases that a tool fits are drafts" in drafted.exception.what
    neither = CliRunner().invoke(app, ["-C", str(one.folder), "calibrate"])
    assert isinstance(neither.exception, ConfigError)


def test_requests_of_the_log_whose_offer_was_used_can_be_taken(make_world: Worlds) -> None:
    one = make_world(OFFICE)
    for number in range(22):
        assert one.crib.select(f"look up order {number}").tools
        one.call("office.get_order", {})
    for task in UNDONE:
        one.crib.select(f"{task} please")
    done = CliRunner().invoke(app, ["-C", str(one.folder), "calibrate", "--from-traces", "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    report = json.loads(done.stdout[done.stdout.index("{") :])["report"]
    assert report["from_log"] is True
    assert report["n_answerable"] == 22


def test_a_log_without_requests_that_nothing_fits_is_completed_by_cases(make_world: Worlds) -> None:
    one = make_world(OFFICE)
    for number in range(22):
        one.crib.select(f"look up order {number}")
        one.call("office.get_order", {})
    alone = CliRunner().invoke(app, ["-C", str(one.folder), "calibrate", "--from-traces"])
    assert isinstance(alone.exception, ConfigError)
    assert "8 more that none fits" in str(alone.exception) and "beside --from-traces" in str(alone.exception)
    text = "".join(json.dumps(row) + "\n" for row in rows() if row["expect"] is None)
    (one.folder / "none.jsonl").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["-C", str(one.folder), "calibrate", "none.jsonl", "--from-traces", "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    report = json.loads(done.stdout[done.stdout.index("{") :])["report"]
    assert (report["n_answerable"], report["n_unanswerable"], report["from_log"]) == (22, 10, True)


def test_drafts_are_enough_to_calibrate_on_once_they_are_in_peoples_words(make_world: Worlds) -> None:
    verbs = {"list": "Lists all", "delete": "Removes one of the", "export": "Writes into a file all", "tag": "Labels"}
    nouns = ("invoices", "parcels", "contracts", "shifts", "tickets", "recipes", "sensors", "vehicles")
    tools = [tool(f"{verb}_{noun}", f"{does} {noun} of a team.") for verb, does in verbs.items() for noun in nouns]
    one = make_world({"desk": tools})
    words = ["-C", str(one.folder)]
    assert CliRunner().invoke(app, [*words, "eval", "init"]).exit_code == 0
    drafts = [json.loads(line) for line in (one.folder / "cases.jsonl").read_text(encoding="utf-8").splitlines()]
    raw = CliRunner().invoke(app, [*words, "calibrate", "cases.jsonl"])
    assert isinstance(raw.exception, ConfigError) and "drafts" in raw.exception.what
    for row in drafts:
        if row["expect"] is not None:
            row["tags"].remove("draft")
    (one.folder / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in drafts), encoding="utf-8")
    done = CliRunner().invoke(app, [*words, "calibrate", "cases.jsonl", "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    assert json.loads(done.stdout)["report"]["n_unanswerable"] == 12


def sample(n: int, seed: int) -> list[Known]:
    """Requests whose confidence is too high by 1 and too flat by half in its logit."""
    chance = np.random.default_rng(seed)
    true = np.clip(chance.normal(0.5, 1.5, n), -4, 4)
    fits = chance.random(n) < 1 / (1 + np.exp(-true))
    told = 1 / (1 + np.exp(-(true / 2 + 1)))
    return [Known(text=f"request {i}", confidence=float(told[i]), fits=bool(fits[i])) for i in range(n)]


def test_the_map_undoes_what_is_wrong_with_the_confidence() -> None:
    found = calibrate(sample(4_000, 1), model_id="m", floor_now=0.1)
    assert found.calibration.slope == pytest.approx(2.0, abs=0.2)
    assert found.calibration.offset == pytest.approx(-2.0, abs=0.3)
    assert found.calibration.basis == basis_of("m")
    for band in found.report.bands:
        assert band.share == pytest.approx(band.mean, abs=0.06)


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_the_floor_holds_the_stated_rate_on_requests_it_never_saw(share: float) -> None:
    found = calibrate(sample(4_000, 2), model_id="m", floor_now=0.1, false_refusal=share)
    assert found.report.held_out.false_refusal == pytest.approx(share, abs=0.012)
    fresh = [one for one in sample(4_000, 3) if one.fits]
    refused = np.mean([found.calibration.of(one.confidence) < found.calibration.floor for one in fresh])
    assert refused == pytest.approx(share, abs=0.012)


def test_floor_by_hand() -> None:
    values = np.arange(1, 101) / 101  # 100 answerable requests, 2 of which may fall
    assert floor_for(values, 0.02) == pytest.approx(0.0297)
    assert (values < floor_for(values, 0.02)).sum() == 2
    assert floor_for(np.array([0.5, 0.6]), 0.02) == 0.45


@pytest.mark.parametrize("share", [0.0, 0.5, float("nan")])
def test_a_rate_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ConfigError):
        calibrate(sample(100, 4), model_id="m", floor_now=0.1, false_refusal=share)


def test_what_is_certain_stays_certain_and_no_order_changes() -> None:
    calibration = calibrate(sample(500, 5), model_id="m", floor_now=0.1).calibration
    hits = tuple(
        Hit(tool_idx=n, tool_id=str(n), score=1.0 - n / 10, confidence=c) for n, c in enumerate((1.0, 0.7, 0.3, 0.0))
    )
    ranking = calibration.applied(Ranking(hits=hits, capabilities=("x",), confidence=1.0))
    told = [hit.confidence for hit in ranking.hits]
    assert (told[0], told[-1], ranking.confidence) == (1.0, 0.0, 1.0)
    assert told == sorted(told, reverse=True)


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    calibration = calibrate(sample(500, 6), model_id="m", floor_now=0.1, made="2026-11-30T00:00:00Z").calibration
    calibration.write(tmp_path / "c.json")
    assert Calibration.read(tmp_path / "c.json") == calibration
    (tmp_path / "c.json").write_text("[]", encoding="utf-8")
    with pytest.raises(RetrievalError):
        Calibration.read(tmp_path / "c.json")


def test_named_tools_and_empty_results_move_no_floor() -> None:
    values = np.arange(1, 101) / 101
    assert floor_for(np.concatenate([values, np.ones(900), np.zeros(50)]), 0.02) == floor_for(values, 0.02)
    assert floor_for(np.ones(20), 0.02) == 0.0


def test_a_share_that_floats_cannot_hold_allows_what_it_says() -> None:
    values = np.arange(1, 101) / 101
    assert (values < floor_for(values, 0.29)).sum() == 29


def test_named_requests_are_not_enough_to_calibrate_on() -> None:
    named = [Known(text=f"named {i}", confidence=1.0, fits=True) for i in range(40)]
    few = [Known(text=f"few {i}", confidence=0.5, fits=True) for i in range(7)]
    none = [Known(text=f"none {i}", confidence=0.1, fits=False) for i in range(20)]
    with pytest.raises(ConfigError, match="neither 0 nor 1"):
        calibrate([*named, *few, *none], model_id="m", floor_now=0.1)


@pytest.mark.parametrize("line", ["", "\nconfidence_floor = 0.9"], ids=["fitted floor", "floor of the settings"])
def test_the_floor_in_force_is_compared_on_the_scale_of_what_is_measured(make_world: Worlds, line: str) -> None:
    one = make_world(OFFICE)
    made(one.folder)
    put_in_force(one, f'calibration = "toolcrib.calibration.json"{line}')
    options = one.crib.pipeline().options
    floor = floor_in_force(one.crib.pipeline())
    assert options.calibration is not None and options.calibration.of(floor) == pytest.approx(options.confidence_floor)
    assert floor != pytest.approx(options.confidence_floor, abs=1e-3)
    again = made(one.folder, "--out", "again.json")
    assert again["report"]["before"]["floor"] == pytest.approx(floor)  # type: ignore[index]


@pytest.mark.parametrize(
    "wrong",
    [{"n_answerable": "27"}, {"n_unanswerable": 2.5}, {"n_answerable": True}, {"made": 3}, {"n_answerable": -1}],
)
def test_counts_that_are_none_are_refused(wrong: dict[str, object]) -> None:
    whole = asdict(calibrate(sample(500, 6), model_id="m", floor_now=0.1).calibration)
    assert Calibration.of_values(whole).n_answerable > 0
    with pytest.raises(ValueError, match=r"whole numbers|a text"):
        Calibration.of_values(whole | wrong)
