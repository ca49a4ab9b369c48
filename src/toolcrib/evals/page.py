"""One page for a run: figures, plots, and the cases that went wrong. HTML that needs nothing but itself.

Above: `cli/evals.py`. Below: `sheet.py`, `plots.py`, and a run as `compare.saved` keeps it, so that an old run can be
drawn again.

Invariant: every text from cases and definitions goes through `plots.text`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.evals.plots import Mark, bar, breaking, curve, histogram, text
from toolcrib.evals.results import EQUAL_FIGURES, EQUAL_TOKENS, MAX_FILLED
from toolcrib.evals.sheet import count, document, percent, section, table, tiles

_NAMES = {
    "mrr": "MRR",
    "ndcg@10": "nDCG@10",
    "selected_recall": "recall of what was offered",
    "selected_completeness": "everything needed was offered",
    "refusal_auroc": "tells tasks that nothing fits (AUROC)",
    "false_refusal": "refused, though a tool fits",
    "false_accept": "offered, though nothing fits",
    "false_selection": "offered a forbidden tool",
}
_LOWER = ("false_refusal", "false_accept", "false_selection")
_ROAD = ("registry", "eligibility", "retrieval", "routing", "selection")
_MAX_TAGS, _MAX_PAIRS = 40, 12


def page(run: Mapping[str, Any]) -> str:
    """The whole page.

    Args:
        run: as `compare.saved` makes it.
    """
    summary = run["summary"]
    parts = [
        _head(run),
        _alarm(summary),
        _tiles(summary),
        _metrics(summary),
        _tokens(summary),
        _equal_tokens(summary),
        _groups("Sets", summary["sets"], "n_cases") if len(summary["sets"]) > 1 else "",
        _groups("Tags", summary["by_tag"], "n"),
        _stages(summary),
        _confused(summary),
        _latency(run),
        _comparison(summary),
        _worst(summary),
        _notes(summary),
    ]
    return document(f"Toolcrib: {', '.join(summary['sets'])}", parts)


def _head(run: Mapping[str, Any]) -> str:
    summary = run["summary"]
    asked = f"{summary['n_answerable']} that a tool fits, {summary['n_nothing_fits']} that none fits"
    about = f"{summary['n_cases']} cases ({asked}) of {', '.join(summary['sets'])}"
    made = f"{run['at'][:16].replace('T', ' ')} UTC, toolcrib {run['toolcrib']}"
    sample = f", at most {summary['sample']} of each kind and set" if summary.get("sample") else ""
    return f"<header><h1>How well tools are found</h1><p>{text(about + sample)}</p><p>{text(made)}</p></header>"


def _alarm(summary: Mapping[str, Any]) -> str:
    told = []
    shown = summary["stages"]["exposure"]
    if shown["total"]:
        kinds = ", ".join(f"{n} in {kind}" for kind, n in shown.items() if n and kind != "total")
        told.append(f"Something showed of tools that a caller may not know of: {kinds}. This must never be.")
    told += [f"Fell short: {one}" for one in summary.get("gate", {}).get("fell_short", ())]
    return "".join(f'<p class="alarm">{text(line)}</p>' for line in told)


def _tiles(summary: Mapping[str, Any]) -> str:
    metrics, stages = summary["metrics"], summary["stages"]
    found = []
    for name in ("recall@5", "completeness@10", "selected_completeness", "false_refusal", "false_accept"):
        if metrics.get(name) is not None:
            spread = summary["intervals"].get(name)
            between = f"{percent(spread[0])} to {percent(spread[1])}" if spread else ""
            found.append((_NAMES.get(name, name), f"{percent(metrics[name])} %", between))
    tokens = stages["schema_tokens"]
    if tokens["offered_mean"] is not None:
        found.append(("tokens offered", count(tokens["offered_mean"]), f"of {count(tokens['all_tools_mean'])} in all"))
    if summary["latency_ms"]["p95"] is not None:
        found.append(
            ("a select, p95", f"{summary['latency_ms']['p95']:.1f} ms", f"p50 {summary['latency_ms']['p50']:.1f}")
        )
    return tiles(found)


def _metrics(summary: Mapping[str, Any]) -> str:
    rows = []
    for name, value in summary["metrics"].items():
        if value is None:
            continue
        low, high = summary["intervals"].get(name) or (None, None)
        between = "" if low is None else f"{percent(low)} to {percent(high)}"
        less = " <small>(less is better)</small>" if name in _LOWER else ""
        rows.append(
            f"<tr><th>{text(_NAMES.get(name, name))}{less}</th><td class=n>{percent(value)}</td>"
            f"<td class=draw>{bar(value, low=low, high=high)}</td><td class=span>{text(between)}</td></tr>"
        )
    head = "<tr><th>figure</th><th class=n>%</th><th></th><th class=span>95 % interval</th></tr>"
    return section("Figures", table(head, rows)) if rows else ""


def _tokens(summary: Mapping[str, Any]) -> str:
    points = [(row["tokens"], row["recall"]) for row in summary["recall_by_tokens"] if row["recall"] is not None]
    if not points:
        return ""
    marks, rows, others = [], [], []
    for name, one in summary.get("baselines", {}).items():
        if "failed" in one:
            rows.append(f"<tr><td></td><th>{text(name)}</th><td colspan=5>{text(one['failed'])}</td></tr>")
            continue
        own = one["by_default"]
        marks.append(Mark(name=name, x=max(own["tokens"], 1.0), y=own["recall"]))
        others.append([(row["tokens"], row["recall"]) for row in one["recall_by_tokens"]])
        found = one["metrics"]
        rows.append(
            f"<tr><td class=n>{len(marks)}</td><th>{breaking(name)}</th>"
            + "".join(f"<td class=n>{percent(found.get(f'recall@{k}'))}</td>" for k in (1, 5, 10))
            + f"<td class=n>{percent(found['recall_at_equal_tokens'])}</td>"
            + f"<td class=n>{count(own['tokens'])}</td></tr>"
        )
    title, x_label = "Recall against tokens of definitions", "tokens of definitions"
    drawn = curve(points, marks, others=others, title=title, x_label=x_label)
    words = "The line: share of needed capabilities covered when the ranking is filled into so many tokens."
    if marks:
        words += " Numbers: what each baseline gives by itself; dashed: its ranking filled in as far."
    body = f'<figure>{drawn}<figcaption>{text(words)}</figcaption></figure>'  # fmt: skip
    if rows:
        head = (
            "<tr><th></th><th>baseline</th><th class=n>R@1</th><th class=n>R@5</th><th class=n>R@10</th>"
            "<th class=n>R at equal tokens</th><th class=n>tokens by itself</th></tr>"
        )
        body += table(head, rows)
        about = [f"{name}: {one['about']}" for name, one in summary["baselines"].items() if one["about"]]
        body += "".join(f"<p><small>{text(line)}</small></p>" for line in about)
    return section("Recall against tokens", body)


def _equal_tokens(summary: Mapping[str, Any]) -> str:
    """Each way of finding tools, filled into the same tokens."""
    ways = {"toolcrib": summary["recall_by_tokens"]}
    ways |= {name: one["recall_by_tokens"] for name, one in summary["baselines"].items() if "failed" not in one}
    rows = []
    for name, by_tokens in ways.items():
        shown = [row for row in by_tokens if row["tokens"] in EQUAL_TOKENS]
        for figure, words in EQUAL_FIGURES.items():
            if any(row[figure] is not None for row in shown):
                cells = "".join(f"<td class=n>{percent(row[figure])}</td>" for row in shown)
                rows.append(f"<tr><th>{breaking(name)} <small>{text(words)}</small></th>{cells}</tr>")
    if not rows:
        return ""
    names = "".join(f"<th class=n>{count(tokens)}</th>" for tokens in EQUAL_TOKENS)
    words = f"Percent, with the first {MAX_FILLED} of each ranking filled into so many tokens of definitions."
    return section("At equal tokens", f"<p>{text(words)}</p>" + table(f"<tr><th>tokens</th>{names}</tr>", rows))


def _groups(title: str, groups: Mapping[str, Mapping[str, Any]], n_key: str) -> str:
    rows = []
    for name, one in list(groups.items())[:_MAX_TAGS]:
        figure = "recall@5" if one.get("recall@5") is not None else _first_recall(one)
        value = one.get(figure) if figure else None
        drawn = "" if value is None else bar(value)
        missed = [f"{percent(one[key])} {words}" for key, words in _MISSES if one.get(key)]
        rows.append(
            f"<tr><th>{breaking(name)} <small>{one[n_key]}</small></th><td class=n>{percent(value)}</td>"
            f"<td class=draw>{drawn}</td><td><small>{text(', '.join(missed) or '-')}</small></td></tr>"
        )
    if not rows:
        return ""
    more = f"<p>and {len(groups) - _MAX_TAGS} more</p>" if len(groups) > _MAX_TAGS else ""
    head = "<tr><th>cases</th><th class=n>recall@5</th><th></th><th>refusal, %</th></tr>"
    return section(title, table(head, rows) + more)


_MISSES = (("false_refusal", "refused wrongly"), ("false_accept", "offered wrongly"))


def _first_recall(one: Mapping[str, Any]) -> str:
    return next((name for name, value in one.items() if name.startswith("recall@") and value is not None), "")


def _stages(summary: Mapping[str, Any]) -> str:
    stages = summary["stages"]
    n = stages["capabilities"]
    if not n:
        return ""
    through = {
        "registry": ("in service", stages["registry"]["in_service"]),
        "eligibility": ("permitted, of those", stages["eligibility"]["permitted"]),
        "retrieval": ("among the candidates, of those", stages["retrieval"]["among_candidates"]),
        "routing": (f"{stages['routing']['moved']} tools put behind another", None),
        "selection": ("offered, of the candidates", stages["selection"]["offered_of_candidates"]),
    }
    rows = []
    for stage, (words, share) in through.items():
        codes = [
            f"{k} {code.split('/')[1]}" for code, k in stages["lost_codes"].items() if code.startswith(stage + "/")
        ]
        rows.append(
            f"<tr><th>{stage} <small>{text(words)}</small></th><td class=n>{percent(share)}</td>"
            f"<td class=draw>{'' if share is None else bar(share)}</td><td>{text(', '.join(codes) or '-')}</td></tr>"
        )
    head = "<tr><th>stage</th><th class=n>%</th><th></th><th>lost here</th></tr>"
    rounds = stages["discovery_rounds"]
    outcomes = ", ".join(f"{k} {name}" for name, k in stages["selection"]["outcomes"].items())
    more = f"Outcomes: {outcomes}. All that a task needs in one request: {percent(rounds['in_one'])} %."
    words = (
        f"{n} capabilities were expected. Each that was not offered is counted at the stage that lost its last tool."
    )
    return section("Where tools were lost", f"<p>{text(words)}</p>{table(head, rows)}<p>{text(more)}</p>")


def _confused(summary: Mapping[str, Any]) -> str:
    pairs = summary["confused"]
    if not pairs:
        return ""
    most = pairs[0]["n"]
    rows = [
        f"<tr><td class=id>{breaking(one['expected'])}</td><td class=id>{breaking(one['got_first'])}</td>"
        f"<td class=n>{one['n']}</td>{_often(one['n'], most)}</tr>"
        for one in pairs[:_MAX_PAIRS]
    ]
    head = f"<tr><th>expected</th><th>came first</th><th class=n>cases</th>{'<th></th>' if most > 1 else ''}</tr>"
    return section("Confused", table(head, rows))


def _often(n: int, most: int) -> str:
    """A cell with a bar; none where every pair happened once."""
    return f"<td class=draw>{bar(n / most)}</td>" if most > 1 else ""


def _latency(run: Mapping[str, Any]) -> str:
    times = [case["wall_ms"] for case in run["cases"] if case.get("wall_ms") is not None]
    if not times:
        return ""
    found = run["summary"]["latency_ms"]
    words = ", ".join(f"{name} {found[name]:.1f}" for name in ("p50", "p95", "p99", "max", "cpu_p50"))
    drawn = histogram(times, title="Time of a select", x_label="milliseconds of a select")
    return section(
        "Time", f"<figure>{drawn}<figcaption>{text(words)} ms; the last bar holds all beyond</figcaption></figure>"
    )


def _comparison(summary: Mapping[str, Any]) -> str:
    found = summary.get("compare")
    if not found:
        return ""
    rows = [
        f"<tr><th>{text(_NAMES.get(name, name))}</th><td class=n>{100 * one['mean']:+.1f}</td>"
        f"<td class=n>{100 * one['low']:+.1f} to {100 * one['high']:+.1f}</td>"
        f"<td>{'clear' if one['clear'] else ''}</td></tr>"
        for name, one in found["metrics"].items()
    ]
    head = "<tr><th>figure</th><th class=n>change, %</th><th class=n>95 % interval</th><th></th></tr>"
    made = found["before"]["at"][:16].replace("T", " ")
    words = f"{found['n_paired']} cases in both runs; the run before was made {made} UTC. Change: now minus before."
    body = f"<p>{text(words)}</p>{table(head, rows)}"
    for kind in ("worse", "better"):
        items = "".join(
            f"<li>{text(case['task'])} <small>{text(case['id'])}</small><br>"
            f"{text(_answer(case['before']))} → {text(_answer(case['now']))}</li>"
            for case in found[kind]
        )
        if items:
            body += f"<details><summary>{len(found[kind])} came out {kind}</summary><ul>{items}</ul></details>"
    return section("Against the run before", body)


def _answer(side: Mapping[str, Any]) -> str:
    if side["refused"]:
        return "nothing offered"
    return ", ".join(side["offered"] or side["ranking"]) or "nothing"


def _worst(summary: Mapping[str, Any]) -> str:
    cases = summary["worst"]
    items = "".join(
        f"<details><summary>{text(case['task'])} <small>{text(case['set'])} {text(case['id'])}</small></summary>"
        f"{_case(case)}</details>"
        for case in cases
    )
    return section("Worst cases", items) if items else ""


def _case(case: Mapping[str, Any]) -> str:
    lines = [f"{kind}" for kind in case["exposed"]] + [f"forbidden, and offered: {tool}" for tool in case["forbidden"]]
    body = "".join(f'<p class="alarm">{text(line)}</p>' for line in lines)
    if case["expect"] is None:
        body += "<p>No tool fits, and tools were offered.</p>"
    for number, tools in enumerate(case["expect"] or ()):
        loss = next((one for one in case["lost"] if one["capability"] == number), None)
        rank = case["ranks"][number] if number < len(case["ranks"]) else 0
        body += f"<p>Expected: <span class=id>{breaking(' or '.join(tools[:6]))}</span></p>{_road(loss, rank)}"
    first = ", ".join(case["ranking"][:5]) or "nothing"
    offered = ", ".join(case["offered"]) or f"nothing ({case['outcome']})"
    return (
        f"{body}<p>Came first: <span class=id>{breaking(first)}</span></p>"
        f"<p>Offered: <span class=id>{breaking(offered)}</span> <small>confidence {case['confidence']:.2f}</small></p>"
    )


def _road(loss: Mapping[str, Any] | None, rank: int) -> str:
    """The stages of one capability, up to the one that lost it."""
    steps = []
    for stage in _ROAD:
        if loss is not None and loss["stage"] == stage:
            steps.append(f'<li class="lost">✗ {stage}: {text(loss["code"])}: {text(loss["reason"])}</li>')
            break
        words = f"rank {rank}" if stage == "retrieval" and rank else ""
        steps.append(f"<li>✓ {stage} {text(words)}</li>")
    return f"<ol class=road>{''.join(steps)}</ol>"


def _notes(summary: Mapping[str, Any]) -> str:
    items = "".join(f"<li>{text(note)}</li>" for note in summary["notes"])
    return section("Notes", f"<ul>{items}</ul>") if items else ""
