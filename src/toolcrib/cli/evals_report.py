"""What `toolcrib eval` prints for people. Below: the summary, as `--json` has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.cli.shared import print_table, say
from toolcrib.evals.results import EQUAL_FIGURES, EQUAL_TOKENS, MAX_FILLED

_WORDS = {
    "mrr": "MRR",
    "ndcg@10": "nDCG@10",
    "selected_recall": "recall of what is offered",
    "selected_completeness": "everything needed is offered",
    "refusal_auroc": "tells tasks that nothing fits (AUROC)",
    "false_refusal": "refused, though a tool fits",
    "false_accept": "offered, though nothing fits",
    "false_selection": "offered a forbidden tool",
}
_SHORT = {"mrr": "MRR", "false_refusal": "refused", "false_accept": "accepted"}
_SHOWN_TAGS = 12
_SHOWN_WORST = 5


def print_summary(summary: Mapping[str, Any]) -> None:
    """The figures as tables."""
    rows = [
        (_WORDS.get(name, name), percent(value), _spread(summary["intervals"].get(name)))
        for name, value in summary["metrics"].items()
        if value is not None
    ]
    print_table(("figure", "percent", "95 % interval"), rows)
    if len(summary["sets"]) > 1:
        _print_groups("set", summary["sets"], "n_cases")
    if len(summary["by_tag"]) > 1:
        _print_groups("tag", summary["by_tag"], "n")
    _print_baselines(summary)
    _print_equal_tokens(summary)
    _print_stages(summary)
    if "compare" in summary:
        _print_comparison(summary["compare"])
    _print_worst(summary)
    for note in summary["notes"]:
        say(f"note: {note}")


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _spread(pair: Any) -> str:
    return "" if not pair else f"{percent(pair[0])} to {percent(pair[1])}"


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:,.0f}{unit}" if value >= 100 else f"{value:.1f}{unit}"


def _print_groups(what: str, groups: Mapping[str, Mapping[str, Any]], count: str) -> None:
    known = next(iter(groups.values()))
    names = [name for name in known if name.startswith("recall@")]
    names += [name for name in known if name.startswith("completeness@")][-1:]
    names += ["mrr", "false_refusal", "false_accept"]
    rows = [
        (name, row[count], *(percent(row.get(column)) for column in names))
        for name, row in list(groups.items())[:_SHOWN_TAGS]
    ]
    print_table((what, "cases", *(_SHORT.get(name, name) for name in names)), rows)
    if len(groups) > _SHOWN_TAGS:
        say(f"and {len(groups) - _SHOWN_TAGS} more (--json has all)")


def _print_baselines(summary: Mapping[str, Any]) -> None:
    if not summary["baselines"]:
        return
    rows = []
    for name, one in summary["baselines"].items():
        if "failed" in one:
            say(f"baseline {name}: {one['failed']}")
            continue
        ahead = one["toolcrib_ahead"].get("recall@5") or next(iter(one["toolcrib_ahead"].values()))
        rows.append(
            (
                name,
                *(percent(one["metrics"].get(f"recall@{k}")) for k in (1, 5, 10)),
                percent(one["metrics"]["recall_at_equal_tokens"]),
                f"{100 * ahead['mean']:+.1f} ({100 * ahead['low']:+.1f} to {100 * ahead['high']:+.1f})",
                _number(one["by_default"]["tokens"]),
                _number(one["ms_per_search"]),
            )
        )
    if rows:
        columns = ("baseline", "R@1", "R@5", "R@10", "R at equal tokens", "Toolcrib ahead, R@5", "tokens", "ms")
        print_table(columns, rows)


def _print_equal_tokens(summary: Mapping[str, Any]) -> None:
    """Each way filled into the same tokens of definitions: what share is covered, and of how many tasks all is."""
    ways = {"toolcrib": summary["recall_by_tokens"]}
    ways |= {name: one["recall_by_tokens"] for name, one in summary["baselines"].items() if "failed" not in one}
    rows = []
    for name, by_tokens in ways.items():
        shown = [row for row in by_tokens if row["tokens"] in EQUAL_TOKENS]
        rows += [
            (name, words, *(percent(row[figure]) for row in shown))
            for figure, words in EQUAL_FIGURES.items()
            if any(row[figure] is not None for row in shown)
        ]
    if rows:
        title = f"at equal tokens of definitions, percent (first {MAX_FILLED} of each ranking)"
        print_table(("way", "", *(f"{tokens // 1_000}k tokens" for tokens in EQUAL_TOKENS)), rows, title=title)


def _print_stages(summary: Mapping[str, Any]) -> None:
    stages = summary["stages"]
    lost = stages["lost_codes"]
    rows = [
        ("registry", f"in service: {percent(stages['registry']['in_service'])} %", _lost(lost, "registry")),
        ("eligibility", f"permitted: {percent(stages['eligibility']['permitted'])} %", _lost(lost, "eligibility")),
        (
            "retrieval",
            f"among the candidates: {percent(stages['retrieval']['among_candidates'])} %",
            _lost(lost, "retrieval"),
        ),
        ("routing", f"put behind another: {stages['routing']['moved']}", _lost(lost, "routing")),
        (
            "selection",
            f"offered of these: {percent(stages['selection']['offered_of_candidates'])} %",
            _lost(lost, "selection"),
        ),
    ]
    if stages["capabilities"]:
        print_table(("stage", f"of {stages['capabilities']} expected capabilities", "lost here"), rows)
    tokens, speed = stages["schema_tokens"], summary["latency_ms"]
    say(
        f"tokens: {_number(tokens['offered_mean'])} offered, {_number(tokens['all_tools_mean'])} for all tools; "
        f"a select: {_number(speed['p50'], ' ms')} (p50), {_number(speed['p95'], ' ms')} (p95); "
        f"shown of hidden tools: {stages['exposure']['total']}"
    )


def _lost(codes: Mapping[str, int], stage: str) -> str:
    return ", ".join(f"{n} {code.split('/')[1]}" for code, n in codes.items() if code.startswith(f"{stage}/"))


def _print_comparison(found: Mapping[str, Any]) -> None:
    rows = [
        (
            _WORDS.get(name, name),
            f"{100 * one['mean']:+.1f}",
            f"{100 * one['low']:+.1f} to {100 * one['high']:+.1f}",
            "clear" if one["clear"] else "",
        )
        for name, one in found["metrics"].items()
    ]
    print_table(("now minus before, percent", "mean", "95 % interval", ""), rows)
    say(f"{found['n_paired']} cases compared, {len(found['worse'])} came out worse, {len(found['better'])} better")
    for case in found["worse"][:_SHOWN_WORST]:
        say(f"  worse: {case['id']}: {case['task'][:70]}")


def _print_worst(summary: Mapping[str, Any]) -> None:
    for case in summary["worst"][:_SHOWN_WORST]:
        why = "; ".join(f"{one['stage']}: {one['reason']}" for one in case["lost"])
        why = why or ("offered, though nothing fits" if case["expect"] is None else "")
        why = "; ".join([*case["exposed"], *(f"forbidden: {t}" for t in case["forbidden"]), why])
        say(f"worst: {case['id']}: {case['task'][:70]!r}: {why}")
