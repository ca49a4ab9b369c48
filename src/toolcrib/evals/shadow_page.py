"""The report of shadow mode as one page: HTML that needs nothing but itself.

Above: `cli/shadow.py`. Below: `sheet.py`, `plots.py`; figures as `shadow.figures` gives them.

Invariants
1. Every text from records and settings goes through `plots.text`.
2. What is not known has no row; where nothing was compared there are words, and no table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolcrib.evals.plots import breaking, text
from toolcrib.evals.shadow_thresholds import Bound
from toolcrib.evals.sheet import count, document, percent, section, table, tiles

_LISTED = 20
_CALLERS = 5


def shadow_page(told: Mapping[str, Any], *, bounds: Sequence[Bound], state: str, at: str, version: str) -> str:
    """The whole page.

    Args:
        told: as `shadow.figures` gives it.
        state: in words, what is tried now, or that shadow mode is off.
        at: now, ISO 8601, UTC. version: of Toolcrib.
    """
    parts = [_head(told, state=state, at=at, version=version), _alarm(told, bounds)]
    if told["n_compared"]:
        parts += [_tiles(told), _figures(told), _thresholds(bounds), _outcomes(told), _reach(told, "lost")]
        parts += [_reach(told, "gained"), _lost_calls(told), _disagreements(told)]
    else:
        parts.append(_thresholds(bounds))
    parts += [_faults(told), _notes(told)]
    return document("Toolcrib: shadow mode", parts)


def _head(told: Mapping[str, Any], *, state: str, at: str, version: str) -> str:
    lines = [state, f"{_moment(at)} UTC, toolcrib {version}"]
    if told["n_compared"]:
        lines[1:1] = [
            f"{told['n_compared']:,} selects compared, {told['n_labelled']:,} of them with a call after them, "
            f"from {_moment(told['first_at'])} to {_moment(told['last_at'])}"
        ]
    words = "".join(f"<p>{text(line)}</p>" for line in lines)
    return f"<header><h1>What the candidate would have answered</h1>{words}</header>"


def _moment(at: str) -> str:
    return at[:16].replace("T", " ")


def _alarm(told: Mapping[str, Any], bounds: Sequence[Bound]) -> str:
    lines = [f"Fails: {one}" for one in bounds if not one.holds]
    if told["n_failed"]:
        lines.append(f"The candidate could not answer {told['n_failed']} of {told['n_failed'] + told['n_compared']}.")
    return "".join(f'<p class="alarm">{text(line)}</p>' for line in lines)


def _tiles(told: Mapping[str, Any]) -> str:
    agreement, calls = told["agreement"], told["calls"]
    shares = (
        ("same first tool", agreement["first"], ""),
        (f"overlap of the first {agreement['k']}", agreement["overlap"], ""),
        ("outcome changed", told["outcomes"]["changed"], ""),
        ("called tool lost", calls["lost"], f"of {told['n_labelled']:,} selects with a call"),
    )
    found = [(name, f"{percent(share)} %", more) for name, share, more in shares if share is not None]
    if told["tokens"]["ratio"] is not None:
        found.append(("tokens, of the present's", f"{percent(told['tokens']['ratio'])} %", ""))
    return tiles(found)


def _figures(told: Mapping[str, Any]) -> str:
    tokens, calls, latency, agreement = told["tokens"], told["calls"], told["latency_ms"], told["agreement"]
    recall = percent(calls["recall_present"]), percent(calls["recall_candidate"])
    mean = count(tokens["present_mean"]), count(tokens["candidate_mean"])
    rows = [
        ("recall of called tools, %", *recall, _difference(calls["difference"], scale=100)),
        ("called tool lost, %", "", percent(calls["lost"]), ""),
        ("called tool won, %", "", percent(calls["won"]), ""),
        ("tokens, mean", *mean, _difference(tokens["difference"])),
        ("latency p50, ms", _ms(latency["present"]["p50"]), _ms(latency["candidate"]["p50"]), ""),
        ("latency p95, ms", _ms(latency["present"]["p95"]), _ms(latency["candidate"]["p95"]), ""),
        ("same tools, %", "", percent(agreement["same_tools"]), ""),
    ]
    known = [row for row in rows if row[2] != "-"]
    head = "<tr><th>figure</th><th class=n>present</th><th class=n>candidate</th><th class=n>difference</th></tr>"
    cells = [
        f"<tr><th>{text(name)}</th><td class=n>{text(then)}</td><td class=n>{text(now)}</td>"
        f"<td class=n>{between}</td></tr>"
        for name, then, now, between in known
    ]
    words = "Difference: candidate minus present, with its 95 % interval over selects."
    return section("Figures", table(head, cells) + f"<p><small>{text(words)}</small></p>")


def _difference(found: Mapping[str, Any] | None, *, scale: float = 1) -> str:
    """HTML: the mean, and its interval below it."""
    if found is None:
        return ""
    mean, low, high = (scale * found[key] for key in ("mean", "low", "high"))
    return f"{mean:+.1f}<br><small>{low:+.1f} to {high:+.1f}</small>"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _thresholds(bounds: Sequence[Bound]) -> str:
    rows = [f"<tr><th>{'holds' if one.holds else '✗ fails'}</th><td>{text(one)}</td></tr>" for one in bounds]
    return section("Thresholds of the release", table("", rows)) if rows else ""


def _outcomes(told: Mapping[str, Any]) -> str:
    changed = [row for row in told["outcomes"]["pairs"] if row["present"] != row["candidate"]]
    rows = [
        f"<tr><td>{text(row['present'])}</td><td>{text(row['candidate'])}</td><td class=n>{row['n']}</td></tr>"
        for row in changed
    ]
    head = "<tr><th>present</th><th>candidate</th><th class=n>selects</th></tr>"
    return section("Outcomes that change", table(head, rows)) if rows else ""


def _reach(told: Mapping[str, Any], side: str) -> str:
    found = told["reach"][side]
    rows = []
    for row in found[:_LISTED]:
        more = row["n_callers"] - _CALLERS
        who = ", ".join(row["callers"][:_CALLERS]) + (f" and {more} more" if more > 0 else "")
        rows.append(
            f"<tr><td class=id>{breaking(row['tool_id'])}</td><td class=n>{row['n_selects']}</td>"
            f"<td class=id>{breaking(who)}</td></tr>"
        )
    if not rows:
        return ""
    n_tools = told["reach"][f"n_{side}_tools"]
    more = f"<p>and {n_tools - len(rows)} more tools</p>" if n_tools > len(rows) else ""
    head = "<tr><th>tool</th><th class=n>selects</th><th>callers</th></tr>"
    title = "Tools that callers would lose" if side == "lost" else "Tools that callers would gain"
    return section(title, table(head, rows) + more)


def _lost_calls(told: Mapping[str, Any]) -> str:
    rows = [
        f"<tr><td class=id>{breaking(row['tool_id'])}</td><td class=n>{row['n']}</td></tr>"
        for row in told["calls"]["lost_tools"]
    ]
    head = "<tr><th>called, and not offered by the candidate</th><th class=n>selects</th></tr>"
    return section("Called tools that would be lost", table(head, rows)) if rows else ""


def _disagreements(told: Mapping[str, Any]) -> str:
    """A list, not a table: four ids beside each other are too wide for a phone."""
    items = []
    for row in told["disagreements"]:
        called = f"; called: {', '.join(row['called'])}" if row["called"] else ""
        lost = ' <small class="lost">✗ lost</small>' if row["lost_calls"] else ""
        items.append(
            f"<li><span class=id>{breaking(row['present'])} → {breaking(row['candidate'])}</span>{lost}<br>"
            f"<small>trace {text(row['trace_id'][:12])}{breaking(called)}</small></li>"
        )
    words = "The newest selects with another first tool or outcome: present → candidate. See toolcrib trace show."
    return section("Look at these", f"<p>{text(words)}</p><ul>{''.join(items)}</ul>") if items else ""


def _faults(told: Mapping[str, Any]) -> str:
    lines = [f"{n} times: {fault}" for fault, n in told["faults"].items()]
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    return section("Where the candidate failed", f"<ul>{items}</ul>") if items else ""


def _notes(told: Mapping[str, Any]) -> str:
    lines = list(told["notes"])
    if told["n_dropped"]:
        lines.append(f"{told['n_dropped']} selects were dropped: more came than the candidate could answer")
    if told["n_other_candidates"]:
        lines.append(f"{told['n_other_candidates']} comparisons of earlier candidates were left out")
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    return section("Notes", f"<ul>{items}</ul>") if items else ""
