"""What a reviewer reads: one definition or one server as lines for a terminal, or as JSON for programs.

    tool    ─▶ head, its past, findings, then what changed by place, or what it says
    server  ─▶ what runs, what changed of it, how much waits, its own words

Above: `review.py`, `review_session.py`, `keep.py`. Below: `review/compared.py` says what differs.

Invariants
1. Nothing that a definition or a server says reaches the terminal as it is: every text passes `in_a_line`, `as_json`
   or `show`, and colours are put around it, never taken from it.
2. What is cut says how much is missing; `whole` cuts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any

import typer

from toolcrib.catalog.grading import Grade
from toolcrib.review.compared import ABSENT, Difference, Piece, as_json, differences, in_a_line, marked
from toolcrib.review.lint import Finding, Level
from toolcrib.review.text import show
from toolcrib.review_queue import ReviewItem, ServerReview
from toolcrib.types import Provenance

_MAX_TEXT = 1_500
"""Characters of one text on a page."""
_MAX_ROWS = 30
"""Places, or parameters, on a page."""
_MAX_NOTES = 8
"""On what one schema takes now."""
_GRADES = {
    Grade.MODEL_READS: "a model reads it",
    Grade.APPROVAL_RESTS_ON: "risk and approval rest on it",
    Grade.CHANGES_NOTHING: "it changes nothing",
}
_COLOURS = {Level.BLOCK: typer.colors.RED, Level.REVIEW: typer.colors.YELLOW, Level.INFO: typer.colors.BRIGHT_BLACK}


def tool_page(item: ReviewItem) -> list[str]:
    """One definition: findings first, then what changed, or, where nothing was approved before, what it says."""
    lines = [*head(item), *finding_lines(item.findings)]
    lines += change_lines(item)
    return lines if item.was is not None else [*lines, *said_lines(item.tool.definition)]


def head(item: ReviewItem) -> list[str]:
    """Which definition, why it is not in service, and what is known of its past."""
    tool = item.tool
    lines = [f"{in_a_line(tool.tool_id)}  {tool.code}: {in_a_line(tool.reason)}", show(tool.digest)]
    lines += [f"  {told}" for told in _past(item)]
    if item.renamed_from:
        lines.append(f"  to keep its old name working: aliases = [{as_json(item.renamed_from)}]")
    if item.signed_by:
        lines.append(f"  signed by {', '.join(item.signed_by)}")
    return lines


def in_short(item: ReviewItem) -> str:
    """Why it is not in service, in a line: of a change what is known of its past, and which fields it touched."""
    fields = ", ".join(in_a_line(change.label or "the definition") for change in item.changes)
    told = [*_past(item), f"changed: {fields}" if fields else ""]
    return "; ".join(one for one in told if one) or in_a_line(item.tool.reason)


def _past(item: ReviewItem) -> Iterator[str]:
    if item.approved_before:
        event = item.approved_before
        yield f"back to what {in_a_line(event.reviewer)} approved on {show(event.at[:10])}"
    if item.swapped_with:
        yield f"has exchanged its description with {in_a_line(item.swapped_with)}"
    if item.renamed_from:
        yield f"{in_a_line(item.renamed_from)} under another name"


def finding_lines(findings: Iterable[Finding]) -> list[str]:
    """Three facts each: what and where, the words that struck, why it matters."""
    lines: list[str] = []
    for finding in findings:
        level = typer.style(f"{finding.level.value:<6}", fg=_COLOURS[finding.level], bold=finding.level is Level.BLOCK)
        lines.append(f"  {level}  {placed(finding)}: {in_a_line(finding.why)}")
        if finding.evidence:
            lines.append(f"          {in_a_line(finding.evidence)}")
    return lines


def placed(finding: Finding) -> str:
    """The rule, and where it struck if that is not the whole definition."""
    return f"{finding.rule} at {in_a_line(finding.pointer)}" if finding.pointer else finding.rule


def change_lines(item: ReviewItem) -> list[str]:
    """What changed, field by field, the worst first; under each the places that differ, with the words that do."""
    places = _places(item)
    n_left = _MAX_ROWS
    lines: list[str] = []
    for change in item.changes:
        told = in_a_line(f"{change.field or 'the definition'}: {change.summary}")
        lines.append(f"  {typer.style(told, bold=True)}  ({_GRADES[change.grade]})")
        notes = change.schema.notes if change.schema else ()
        lines += [f"    {in_a_line(note)}" for note in notes[:_MAX_NOTES]]
        lines += [f"    and {len(notes) - _MAX_NOTES} more of that kind"] if len(notes) > _MAX_NOTES else []
        theirs = places.get(change.field, [])
        lines += [line for one in theirs[: max(0, n_left)] for line in _difference_lines(one)]
        n_left -= len(theirs)
    if n_left < 0:
        lines.append(f"  and {-n_left} more places (the whole shows them)")
    return lines


def _places(item: ReviewItem) -> dict[str, list[Difference]]:
    """The places that differ, by top-level field; none where the approved definition is not kept."""
    found: dict[str, list[Difference]] = {}
    if isinstance(item.was, Mapping) and isinstance(item.tool.definition, Mapping):
        for one in differences(item.was, item.tool.definition):
            field = one.pointer.split("/")[1].replace("~1", "/").replace("~0", "~")
            found.setdefault(field, []).append(one)
    return found


def _difference_lines(difference: Difference) -> Iterator[str]:
    was, now = difference.was, difference.now
    yield f"    {in_a_line(difference.pointer)}  {difference.kind}"
    if isinstance(was, str) and isinstance(now, str):
        before, after = marked(was, now)
        yield f"      was  {_joined(before, '[-', '-]', typer.colors.RED)}"
        yield f"      now  {_joined(after, '{+', '+}', typer.colors.GREEN)}"
        return
    if was is not ABSENT:
        yield f"      was  {_cut(as_json(was))}"
    if now is not ABSENT:
        yield f"      now  {_cut(as_json(now))}"


def _joined(pieces: Sequence[Piece], begin: str, end: str, colour: str) -> str:
    return "".join(
        typer.style(f"{begin}{_cut(piece.text)}{end}", fg=colour) if piece.mark else _cut(piece.text)
        for piece in pieces
    )


def said_lines(definition: Any) -> list[str]:
    """What a definition says, in short: title, description, parameters, annotations."""
    if not isinstance(definition, Mapping):
        return [f"  {_cut(as_json(definition))}"]
    lines = [
        f"  {key}: {_cut(_plain(definition[key]))}"
        for key in ("title", "description", "annotations", "_meta")
        if definition.get(key)
    ]
    schema = definition.get("inputSchema")
    parameters = schema.get("properties") if isinstance(schema, Mapping) else None
    if isinstance(parameters, Mapping):
        required = schema.get("required") if isinstance(schema, Mapping) else None
        needed = required if isinstance(required, list) else []
        rows = list(parameters.items())
        lines += [_parameter(str(name), value, is_needed=name in needed) for name, value in rows[:_MAX_ROWS]]
        lines += [f"  and {len(rows) - _MAX_ROWS} more parameters"] if len(rows) > _MAX_ROWS else []
    return lines


def _parameter(name: str, value: Any, *, is_needed: bool) -> str:
    given = value if isinstance(value, Mapping) else {}
    kind = _cut(_plain(given.get("type", "any")))
    rest = {k: v for k, v in given.items() if k not in ("type", "description", "title")}
    more = f"  {_cut(as_json(rest))}" if rest else ""
    needed = ", needed" if is_needed else ""
    return f"  - {in_a_line(name)} ({kind}{needed})  {_cut(_plain(given.get('description', '')))}{more}".rstrip()


def whole(definition: Any) -> list[str]:
    """The definition as JSON, nothing left out."""
    text = json.dumps(definition, indent=2, ensure_ascii=False, sort_keys=True)
    return [show(line) for line in text.split("\n")]  # `splitlines` would end lines where a text says so


def whole_beside(was: Any, now: Any, *, around: int = 2) -> list[str]:
    """The lines of both that differ, and so many around each."""
    return list(unified_diff(whole(was), whole(now), "approved", "now", lineterm="", n=around))


def server_page(server: ServerReview) -> list[str]:
    """What a server is and why somebody should look at it, findings in its own words included."""
    status = server.status
    lines = [f"server {in_a_line(server.server_id)}  {_KINDS[server.kind]}"]
    what, *more = provenance_lines(status.provenance)
    lines += [f"  runs: {what}", *(f"        {one}" for one in more)]
    lines += [f"  {name}: was {_or_nothing(was)}, is {_or_nothing(now)}" for name, was, now in server.changes]
    if server.kind == "provenance":
        lines.append(f"  {_held(server)} (on_provenance = {server.on_change!r})")
    if server.n_waiting:
        levels = (Level.BLOCK, Level.REVIEW, Level.INFO)
        counts = [f"{server.n_findings[level]} {level.value}" for level in levels if server.n_findings.get(level)]
        lines.append(f"  tools that wait: {server.n_waiting}; findings: {', '.join(counts) or 'none'}")
    if status.instructions:
        lines.append(f"  it tells clients (Toolcrib passes it on to nobody): {_cut(in_a_line(status.instructions))}")
    return [*lines, *finding_lines(server.findings)]


def _held(server: ServerReview) -> str:
    if server.on_change != "block":
        return "it serves on"
    if not server.n_held:
        return "no tool is out of service for that alone"
    return f"out of service for that: {server.n_held} of its tools"


_KINDS = {
    "first": "is new: nothing of it is pinned yet",
    "provenance": "is not what was approved",
    "unsigned": "lacks signatures under what it is",
    "instructions": "tells clients something else than when it was approved",
}


def provenance_lines(provenance: Provenance | None) -> list[str]:
    """What runs behind a server, and what to do where it can change by itself."""
    if provenance is None:
        return ["nothing is known of what runs behind it"]
    p = provenance
    what = " ".join(part for part in (p.package, p.version) if part) or p.origin or " ".join(p.arguments) or "unknown"
    by = f", started by {in_a_line(p.launcher)}" if p.launcher else ""
    lines = [f"{p.kind.value} {in_a_line(what)}{by}"]
    for name, value in (("integrity", p.integrity), ("attested by", p.publisher), ("TLS key", p.tls_key)):
        lines += [f"{name} {in_a_line(value)}"] if value else []
    if p.arguments:
        lines.append(f"arguments {in_a_line(' '.join(p.arguments))}")
    if p.env:
        lines.append(f"environment {in_a_line(', '.join(p.env))}")
    if not p.pinned:
        advice = f"; use {in_a_line(p.advice)}" if p.advice else ""
        lines.append(f"not pinned: the next start may fetch another version{advice}")
    if p.note:
        lines.append(in_a_line(p.note))
    return lines


def item_json(item: ReviewItem) -> dict[str, Any]:
    """One definition for programs."""
    tool, before = item.tool, item.approved_before
    return {
        "tool_id": tool.tool_id,
        "server_id": tool.server_id,
        "state": tool.state.value,
        "code": tool.code,
        "reason": tool.reason,
        "digest": tool.digest,
        "approved_digest": item.approved_digest,
        "can_be_approved": item.can_be_approved,
        "level": item.level.value if item.level else None,
        "findings": [finding_json(finding) for finding in item.findings],
        "changes": _changes_json(item),
        "approved_before": {"reviewer": before.reviewer, "at": before.at} if before else None,
        "swapped_with": item.swapped_with,
        "renamed_from": item.renamed_from,
        "signed_by": list(item.signed_by),
        "definition": tool.definition,
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "level": finding.level.value,
        "pointer": finding.pointer,
        "evidence": finding.evidence,
        "why": finding.why,
    }


def server_json(server: ServerReview) -> dict[str, Any]:
    """One server for programs."""
    status, provenance = server.status, server.status.provenance
    return {
        "server_id": server.server_id,
        "kind": server.kind,
        "waits": server.waits,
        "digest": server.digest,
        "provenance": provenance.compared if provenance else {},
        "pinned": provenance.pinned if provenance else None,
        "advice": provenance.advice if provenance else "",
        "changes": [{"field": name, "was": was, "now": now} for name, was, now in server.changes],
        "on_provenance": server.on_change,
        "n_waiting": server.n_waiting,
        "n_held": server.n_held,
        "n_findings": {level.value: server.n_findings.get(level, 0) for level in Level},
        "instructions": status.instructions,
        "findings": [finding_json(finding) for finding in server.findings],
    }


def _changes_json(item: ReviewItem) -> list[dict[str, Any]]:
    places = _places(item)
    return [
        {
            "field": change.field,
            "grade": change.grade.value,
            "summary": change.summary,
            "notes": list(change.schema.notes) if change.schema else [],
            "places": [_place_json(one) for one in places.get(change.field, [])],
        }
        for change in item.changes
    ]


def _place_json(difference: Difference) -> dict[str, Any]:
    told: dict[str, Any] = {"pointer": difference.pointer, "kind": difference.kind}
    sides = (("was", difference.was), ("now", difference.now))
    return {**told, **{name: value for name, value in sides if value is not ABSENT}}


def _plain(value: Any) -> str:
    return in_a_line(value) if isinstance(value, str) else as_json(value)


def _or_nothing(value: str) -> str:
    return in_a_line(value) or "nothing"


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}... ({len(text) - _MAX_TEXT} more characters)"
