"""What `toolcrib policy explain` prints: for programs, and for people.

Above: `policy.py`. Below: `policy_desk.py`, which explains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import typer

from toolcrib.policy.why import Behind, NearMiss, Why
from toolcrib.policy_desk import ToolExplanation
from toolcrib.review.text import show


def explanation_json(found: ToolExplanation) -> dict[str, Any]:
    body: dict[str, Any] = {"tool_id": found.tool_id, "withheld": found.withheld}
    body["routing"] = asdict(found.dropped) if found.dropped else None
    if found.why is None:
        return body
    return {
        **body,
        "action": found.why.action,
        "decided_on": found.why.decided_on,
        "effect": found.why.decision.effect.value,
        "policies": [_behind_json(behind) for behind in found.why.behind],
        "errors": list(found.why.decision.errors),
        "nearest": [
            {**_behind_json(miss.behind), "clause": miss.clause, "outcome": miss.outcome} for miss in found.why.nearest
        ],
    }


def _behind_json(behind: Behind) -> dict[str, Any]:
    rule = behind.rule
    looked = {looked.path: looked.value for looked in behind.looked_at}
    return {
        "policy": rule.label,
        "where": rule.where,
        "effect": rule.effect,
        "obliges": rule.obliges,
        "text": rule.text,
        "looked_at": looked,
    }


def print_explanation(found: ToolExplanation) -> None:
    if found.why is None:
        typer.echo(show(f"{found.tool_id}: not in service ({found.withheld}); policy is not asked"))
        return
    typer.echo("\n".join(show(line) for line in _explanation_lines(found.tool_id, found.why)))
    if found.dropped:
        typer.echo(show(f"routing rules it out in any case ({found.dropped.code}): {found.dropped.reason}"))


def _explanation_lines(tool_id: str, why: Why) -> Iterator[str]:
    yield f"{why.action} {tool_id}: {why.decision.effect}"
    if why.action != why.decided_on:
        yield f"  it may not be discovered, and so not be called either: this is the decision on {why.decided_on}"
    for behind in why.behind:
        yield from _behind_lines(behind)
    for error in why.decision.errors:
        yield f"  evaluation fails, which denies: {error}"
    if not why.behind and not why.decision.errors:
        yield "  no rule permits it" + ("; the permits that come closest:" if why.nearest else "")
    for miss in why.nearest:
        yield from _near_lines(miss)


def _behind_lines(behind: Behind) -> Iterator[str]:
    yield f'  {behind.rule.effect} by "{behind.rule.label}" ({behind.rule.where})'
    yield from (f"    | {line}" for line in behind.rule.text.splitlines())
    yield from _looked_lines(behind)


def _near_lines(miss: NearMiss) -> Iterator[str]:
    yield f'  "{miss.behind.rule.label}" ({miss.behind.rule.where})'
    yield f"    in the way: {miss.clause} is {miss.outcome}"
    yield from _looked_lines(miss.behind)


def _looked_lines(behind: Behind) -> Iterator[str]:
    for looked in behind.looked_at:
        value = looked.value
        if isinstance(value, list | tuple):
            told = ", ".join(value) or "(none)"
        else:
            told = str(value).lower() if isinstance(value, bool) else value or "(empty)"
        yield f"    {looked.path} = {told}"
