"""A proof that cannot fail proves nothing: leaks are planted, and each must be found, with its tool and its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.leaks import global_statistics
from tests.verify import places
from tests.verify.test_verify_commands import run
from toolcrib import pipeline as pipeline_module
from toolcrib.cli.main import app
from toolcrib.crib import Crib
from toolcrib.pipeline import Pipeline
from toolcrib.retrieval import search as search_module
from toolcrib.retrieval.dense import DenseView
from toolcrib.retrieval.index import Index
from toolcrib.retrieval.servers import ServerEvidence
from toolcrib.server.mcp_gateway import Gateway
from toolcrib.settings import load_settings
from toolcrib.verify.groups import seats_of
from toolcrib.verify.stand_in import Owner
from toolcrib.verify.world import world_of

Plant = Callable[[pytest.MonkeyPatch], None]


def count_in_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = pipeline_module.pack

    def leaky(ranking: Any, *, tools: Any, **more: Any) -> Any:
        chosen = honest(ranking, tools=tools, **more)
        return replace(chosen, message=f"{chosen.message} ({len(tools)} tools were looked at.)")

    monkeypatch.setattr(pipeline_module, "pack", leaky)


def count_in_the_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Gateway._introduced

    def leaky(self: Any, ctx: Any, result: Any) -> Any:
        told = honest(self, ctx, result)
        return {**told, "instructions": f"{told['instructions']} {len(self._crib.pipeline().snapshot.tools)} tools."}

    monkeypatch.setattr(Gateway, "_introduced", leaky)


def cache_hint_by_catalog_size(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Gateway._list

    def leaky(self: Any, ctx: Any) -> Any:
        told = honest(self, ctx)
        return {**told, "ttlMs": 1_000 * len(self._crib.pipeline().snapshot.tools)} if "ttlMs" in told else told

    monkeypatch.setattr(Gateway, "_list", leaky)


def error_text(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = pipeline_module.check_call

    def leaky(call: Any, *, tool: Any, in_reach: bool, **more: Any) -> Any:
        verdict = honest(call, tool=tool, in_reach=in_reach, **more)
        return verdict if tool is None or in_reach else replace(verdict, message=f"You may not use {tool.tool_id}.")

    monkeypatch.setattr(pipeline_module, "check_call", leaky)


def did_you_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Crib.call

    async def leaky(self: Any, tool_id: str, arguments: Any, **more: Any) -> Any:
        done = await honest(self, tool_id, arguments, **more)
        known = [tool.tool_id for tool in self.pipeline().snapshot.tools]
        close = [one for one in get_close_matches(tool_id, known, n=1) if done.code == "not_available"]
        return replace(done, message=f"Did you mean {close[0]}?") if close else done

    monkeypatch.setattr(Crib, "call", leaky)


ISOLATION: list[tuple[Plant, str]] = [
    (global_statistics, "library"),
    (count_in_a_message, "library"),
    (count_in_the_instructions, "mcp"),
    (cache_hint_by_catalog_size, "mcp"),
    (error_text, ""),
    (did_you_mean, ""),
]


@pytest.mark.parametrize(("plant", "surface"), ISOLATION, ids=lambda value: getattr(value, "__name__", ""))
def test_isolation_finds_the_leak_and_the_tool_that_shows_it(
    shop: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant, surface: str
) -> None:
    plant(monkeypatch)
    code, report = run(shop, "isolation")
    found = report["counterexample"]
    assert (code, report["holds"]) == (1, False)
    assert found["caller"] == "ann"
    assert found["before"] != found["after"]
    assert len(found["tools"]) == 1, "one tool is enough to show it"
    assert not surface or surface in found["surface"] or found["surface"] in ("cli", "http 2026-07-28")


def whole_catalog_in_each_view(monkeypatch: pytest.MonkeyPatch, leak: Callable[..., None]) -> None:
    """Every view is made honestly; then `leak(view, catalog, postings, vectors)` spoils one thing of it."""
    honest = search_module.View.__init__

    def leaky(self: Any, *, tools: Any, postings: Any, vectors: Any, **more: Any) -> None:
        honest(self, tools=tools, postings=postings, vectors=vectors, **more)
        leak(self, tools, postings, vectors)

    monkeypatch.setattr(search_module.View, "__init__", leaky)


def server_evidence_of_hidden_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server is what all of its tools do, hidden ones among them."""

    def leak(view: Any, tools: Any, _postings: Any, vectors: Any) -> None:
        whole = DenseView(vectors, np.arange(len(tools)), embedder=view._embedder, pieces=None, adapt=False)
        evidence, rows = ServerEvidence([tool.server_id for tool in tools], whole), view._rows
        view._servers = type("Leaky", (), {"scores": lambda _self, asked: evidence.scores(asked)[rows]})()

    whole_catalog_in_each_view(monkeypatch, leak)


def common_words_of_hidden_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a word tells anything is asked of all tools."""

    def leak(view: Any, tools: Any, postings: Any, _vectors: Any) -> None:
        whole = search_module.LexicalView(postings, np.ones(len(tools), dtype=np.bool_))
        most = search_module.COMMON_SHARE * len(tools)
        view._telling = lambda terms: [term for term in terms if whole.n_holding(term) <= most]

    whole_catalog_in_each_view(monkeypatch, leak)


def precedents_over_hidden_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was learned counts where the catalog has all that it was learned over, whoever can reach it."""

    def leaky(self: Any, _tools: Any, caller: Any) -> Any:
        whole = {tool.tool_id: tool.digest for tool in self.snapshot.tools}
        return self.learned.for_reach(whole, tenant=caller.tenant, model_id=self.index.model_id)

    monkeypatch.setattr(Pipeline, "_part_for", leaky)


def calibration_by_catalog_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calibrated confidence falls as the catalog shrinks, and with it what is above the floor."""
    honest = Pipeline.ranked

    def leaky(self: Any, *args: Any, **more: Any) -> Any:
        ranking = honest(self, *args, **more)
        if self.options.calibration is None:
            return ranking
        scale = (len(self.snapshot.tools) / 13) ** 20
        hits = tuple(replace(hit, confidence=min(1.0, hit.confidence * scale)) for hit in ranking.hits)
        return replace(ranking, hits=hits, confidence=max((hit.confidence for hit in hits), default=0.0))

    monkeypatch.setattr(Pipeline, "ranked", leaky)


RETRIEVAL: tuple[Plant, ...] = (
    server_evidence_of_hidden_tools,
    common_words_of_hidden_tools,
    precedents_over_hidden_tools,
    calibration_by_catalog_size,
)


@pytest.mark.parametrize("plant", RETRIEVAL, ids=lambda plant: plant.__name__)
def test_isolation_finds_what_search_takes_from_hidden_tools(
    harbour: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    plant(monkeypatch)
    code, report = run(harbour, "isolation")
    found = report["counterexample"]
    assert (code, report["holds"], found["caller"]) == (1, False, "ann")
    assert found["before"] != found["after"] and found["tools"]


def test_the_proof_is_about_what_was_learned_and_calibrated(harbour: Path) -> None:
    settings = load_settings(harbour)
    profiles = {name: harbour / "profiles" / f"{name}.json" for name in ("ann", "val")}
    with world_of(settings, profiles=profiles).opened(owner=Owner()) as (folder, crib):
        pipeline, seats = crib.pipeline(), seats_of(folder, crib, ("ann", "val"))
        parts = {name: pipeline._part_for(crib.tools(seat.caller), seat.caller) for name, seat in seats.items()}
        assert pipeline.options.calibration is not None
    assert {name: part and len(part.tools) for name, part in parts.items()} == {"ann": 9, "val": 13}
    code, report = run(harbour, "isolation")
    assert (code, report["holds"]) == (0, True)


def known_of_where_routing_rules_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What policy lets callers know of counts as known, though routing rules it out for them."""
    honest, honest_scopes = Pipeline._disclosed_match, Crib.missing_scopes

    def leaky(self: Any, request: Any, ranking: Any, view: Any) -> bool:
        return honest(self, request, ranking, replace(view, disclosed=view.eligibility.disclosed))

    def leaky_scopes(self: Any, name: str, *, caller: Any, channel: Any) -> tuple[str, ...]:
        view = self.pipeline().view(caller, channel)
        tools = self.pipeline().snapshot.tools
        known = [tools[number].tool_id for number in np.flatnonzero(view.eligibility.disclosed)]
        return ("archive",) if name in known else honest_scopes(self, name, caller=caller, channel=channel)

    monkeypatch.setattr(Pipeline, "_disclosed_match", leaky)
    monkeypatch.setattr(Crib, "missing_scopes", leaky_scopes)


def test_isolation_finds_what_policy_discloses_and_routing_hides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = places.archive(tmp_path, {"ann": {}})
    assert run(folder, "isolation")[0] == 0
    known_of_where_routing_rules_it_out(monkeypatch)
    code, report = run(folder, "isolation")
    found = report["counterexample"]
    assert (code, report["holds"]) == (1, False)
    # Either tool alone may look like an answer to what was asked; then only without both does it differ.
    assert found["tools"] and all(one.startswith("archive.") for one in found["tools"])


def listed_and_not_callable(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = pipeline_module.check_call

    def broken(call: Any, *, in_reach: bool, **more: Any) -> Any:
        return honest(call, in_reach=in_reach and call.tool_id != "shop.list_parcels", **more)

    monkeypatch.setattr(pipeline_module, "check_call", broken)


def found_and_not_permitted(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Index.view
    monkeypatch.setattr(Index, "view", lambda self, permitted, **how: honest(self, np.ones_like(permitted), **how))


def permitted_and_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Crib.tools

    def broken(self: Any, *args: Any, **more: Any) -> Any:
        return tuple(tool for tool in honest(self, *args, **more) if tool.tool_id != "shop.list_parcels")

    monkeypatch.setattr(Crib, "tools", broken)


def listed_and_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = search_module.View.search

    def broken(self: Any, *args: Any, **more: Any) -> Any:
        ranking = honest(self, *args, **more)
        return replace(ranking, hits=tuple(hit for hit in ranking.hits if hit.tool_id != "shop.list_parcels"))

    monkeypatch.setattr(search_module.View, "search", broken)


def found_by_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tools that only their own ids find."""
    honest = search_module.View.search
    lost = ("shop.list_parcels", "shop.send_invoice")

    def broken(self: Any, task: str, *args: Any, **more: Any) -> Any:
        ranking = honest(self, task, *args, **more)
        return replace(ranking, hits=tuple(h for h in ranking.hits if h.tool_id not in lost or h.tool_id == task))

    monkeypatch.setattr(search_module.View, "search", broken)


def test_a_tool_that_no_words_find_breaks_parity_unless_it_is_allowed(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_by_no_words(monkeypatch)
    code, report = run(shop, "parity")
    lost = ["shop.list_parcels", "shop.send_invoice"]
    assert (code, report["holds"], report["found_by_id_only"]) == (1, False, {"n": 2, "tools": lost})
    found = report["counterexample"]
    assert (found["variant"], found["tools"]) == ("listed, and found by its own id only", [lost[0]])
    code, report = run(shop, "parity", "--allow-by-id")
    assert (code, report["holds"], report["found_by_id_only"]["tools"]) == (0, True, lost)
    done = CliRunner().invoke(app, ["-C", str(shop), "verify", "parity", "--allow-by-id"])
    assert (
        "Found by their own ids only, and by none of their words: shop.list_parcels, shop.send_invoice." in done.stdout
    )


PARITY: list[tuple[Plant, str, str]] = [
    (listed_and_not_callable, "listed and not callable", "shop.list_parcels"),
    (found_and_not_permitted, "found and not listed", ""),
    (permitted_and_not_listed, "listed is not what the view holds", "shop.list_parcels"),
    (listed_and_not_found, "listed and not found", "shop.list_parcels"),
    (error_text, "not listed, and told apart from no tool", "vault.get_orders"),
    (did_you_mean, "not listed, and told apart from no tool", ""),
]


@pytest.mark.parametrize(("plant", "rule", "tool_id"), PARITY, ids=lambda value: getattr(value, "__name__", ""))
def test_parity_finds_what_is_one_and_not_another(
    shop: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant, rule: str, tool_id: str
) -> None:
    plant(monkeypatch)
    code, report = run(shop, "parity")
    found = report["counterexample"]
    assert (code, report["holds"], found["variant"]) == (1, False, rule)
    assert not tool_id or found["tools"] == [tool_id]
