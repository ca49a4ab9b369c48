"""The page: whole, alone, and safe whatever stands in a definition or a task."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.evals.making import measured, shop_place, write_set
from tests.evals.test_against import Fixed
from toolcrib.evals.against import compared
from toolcrib.evals.compare import difference, saved
from toolcrib.evals.folders import read_folder
from toolcrib.evals.page import page
from toolcrib.evals.places import place_of_folder
from toolcrib.evals.plots import Mark, bar, curve, histogram
from toolcrib.evals.summary import summarised

EVIL = "</title><script>alert('x')</script>\"'><img src=x onerror=alert(1)> \u202e\x00 & <svg onload=a>"
VOID = frozenset({"meta", "br", "wbr"})


class Reader(HTMLParser):
    """Every tag with its attributes, the text, and whether all tags that were opened are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def run_of(folder: Path, **more: Any) -> dict[str, Any]:
    found = measured(shop_place(folder))
    summary = {"sample": 0, "baselines": {}, **summarised(found), **more}
    return saved(summary, found, at="2026-11-30T10:00:00+00:00", version="0.1.0")


def test_a_page_holds_its_figures_and_is_well_formed(tmp_path: Path) -> None:
    run = run_of(tmp_path / "shop")
    told = read(page(run))
    assert f"{100 * run['summary']['metrics']['recall@5']:.1f}" in told.text
    for title in ("Figures", "Recall against tokens", "Tags", "Where tools were lost", "Time"):
        assert title in told.text


def test_a_page_and_a_table_tell_completeness_at_equal_tokens_of_every_way(tmp_path: Path) -> None:
    place = shop_place(tmp_path / "shop")
    found = measured(place)
    half = Fixed("half-found", ["sky.get_forecast"])
    against = compared([half], [place], {place.name: found.results}, depths=(1, 5, 10), seed=1)
    summary = {"sample": 0, **summarised(found), "baselines": against}
    part = page(saved(summary, found, at="2026-11-30T10:00", version="0")).partition("<h2>At equal tokens</h2>")[2]
    told = read(part.partition("</section>")[0])
    rows = re.findall(r"(toolcrib|half-found) ([a-z, ]+?)((?:[0-9]+[.][0-9])+)", told.text)
    assert [(way, words) for way, words, _ in rows] == [
        (way, words)
        for way in ("toolcrib", "half-found")
        for words in ("recall", "all that a task needs", "the same, tasks for several tools")
    ]
    assert rows[0][2] == "100.0" * 4
    assert (rows[3][2], rows[4][2], rows[5][2]) == ("16.7" * 4, "0.0" * 4, "0.0" * 4)


def test_a_page_needs_nothing_but_itself(tmp_path: Path) -> None:
    html = page(run_of(tmp_path / "shop"))
    told = read(html)
    assert not {tag for tag, _attrs in told.tags} & {"script", "link", "img", "iframe", "object", "base"}
    assert not [attrs for _tag, attrs in told.tags if {"src", "href", "style", "onload", "onclick"} & set(attrs)]
    assert not re.search(r"https?:|url\(|@import", html)


def test_a_page_escapes_everything_that_it_did_not_write(tmp_path: Path) -> None:
    folder = write_set(
        tmp_path / "evil",
        queries=[
            {"query_id": EVIL, "query": EVIL, "split": EVIL},
            {"query_id": "n", "query": EVIL + " send mail", "split": EVIL, "expect_none": True},
        ],
        labels=[(EVIL, f"shop.{EVIL}", 0), (EVIL, "shop.get_order", 1)],
        tools=[("shop.get_order", EVIL), (f"shop.{EVIL}", EVIL), ("mail.send", "Send mail.")],
    )
    found = measured(place_of_folder(read_folder(folder)))
    failing = {"about": EVIL, "failed": EVIL}
    summary = {"sample": 0, **summarised(found), "baselines": {EVIL: failing}, "gate": {"fell_short": [EVIL]}}
    run = saved(summary, found, at=EVIL, version=EVIL)
    run["summary"]["compare"] = difference(run, run, seed=1) | {"worse": [_changed_case(run)]}
    html = page(run)
    told = read(html)
    assert not {tag for tag, _attrs in told.tags} & {"script", "img"}
    assert not [attrs for _tag, attrs in told.tags if any(name.startswith("on") for name in attrs)]
    assert "\x00" not in html and "\u202e" not in html
    assert "<U+202E RIGHT-TO-LEFT OVERRIDE>" in told.text


def _changed_case(run: dict[str, Any]) -> dict[str, Any]:
    side = {"refused": False, "offered": [EVIL], "ranking": [EVIL]}
    return {"set": EVIL, "id": EVIL, "task": EVIL, "before": side, "now": {**side, "refused": True}}


def test_a_page_of_nothing_that_can_be_measured_is_still_a_page(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "none", queries=[{"query_id": "n", "query": "knit", "expect_none": True}], labels=[])
    found = measured(place_of_folder(read_folder(folder)))
    run = saved({"sample": 0, "baselines": {}, **summarised(found)}, found, at="2026-11-30T10:00", version="0")
    assert "recall, nDCG" in read(page(run)).text


def test_an_exposure_stands_at_the_top(tmp_path: Path) -> None:
    run = run_of(tmp_path / "shop")
    run["summary"]["stages"]["exposure"] = {"names": 2, "descriptions": 0, "counts": 0, "traces": 0, "total": 2}
    assert "This must never be" in read(page(run)).text


@pytest.mark.parametrize("values", [[0.0], [1.0, 1.0], [0.5, 2.0, 900.0]], ids=["zero", "equal", "far"])
def test_a_histogram_counts_every_value_once(values: list[float]) -> None:
    counts = [int(n) for n in re.findall(r"<title>(\d+) from", histogram(values, title="t", x_label="x"))]
    assert sum(counts) == len(values)


def test_marks_stay_inside_their_plot() -> None:
    drawn = curve([(250, 0.2), (16_000, 0.9)], [Mark(name="all", x=2e6, y=1.0)], title="t", x_label="tokens")
    for name in ("x", "cx", "x1", "x2"):
        assert all(0 <= float(value) <= 360 for value in re.findall(rf'\b{name}="([0-9.-]+)"', drawn))
    assert 'width="100.0"' in bar(7.0)
    assert 'width="0.0"' in bar(-1.0)
