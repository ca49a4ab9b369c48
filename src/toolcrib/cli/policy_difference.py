"""What `toolcrib policy diff` prints: for programs, and for people.

Above: `policy.py`. Below: `policy_desk.py`, which compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from toolcrib.cli.shared import print_table, say
from toolcrib.policy.changes import Change, Unseen
from toolcrib.policy_desk import Difference
from toolcrib.types import Channel

_SHOWN = 5
_MAX_NOTES = 20


def counted(number: int, noun: str) -> str:
    """`1 rule`, `2 rules`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def difference_json(difference: Difference) -> dict[str, Any]:
    return {
        "widens": difference.widens,
        "n_profiles": difference.n_profiles,
        "n_callers_seen": difference.n_seen,
        "n_strangers": difference.n_strangers,
        "n_requests": difference.n_requests,
        "complete": difference.complete,
        "n_unreadable": difference.n_unreadable,
        "changes": [_change_json(change, difference) for change in difference.changes],
        "unseen": [asdict(unseen) for unseen in difference.unseen],
    }


def _change_json(change: Change, difference: Difference) -> dict[str, Any]:
    return {
        "caller": change.asker.name,
        "source": change.asker.source,
        "subject": change.asker.caller.subject,
        "tenant": change.asker.caller.tenant,
        "channels": [channel.value for channel in change.channels],
        "widens": change.widens,
        "circumstances": list(change.circumstances),
        "discover_gained": list(change.found_gained),
        "discover_lost": list(change.found_lost),
        "call": [
            {
                "tool_id": call.tool_id,
                "before": call.before.value,
                "after": call.after.value,
                "widens": call.widens,
                "calls_by_caller": call.n_calls,
                "calls_by_anybody": difference.calls.get(call.tool_id, 0),
            }
            for call in change.calls
        ],
        "approve_gained": list(change.approve_gained),
        "approve_lost": list(change.approve_lost),
        "errors": list(change.errors),
    }


def print_difference(difference: Difference, *, days: int) -> None:
    rows = [row for change in difference.changes for row in _change_rows(change, difference)]
    if rows:
        columns = ("caller", "channels", "what", "tools", "which", f"calls in {days} days")
        print_table(columns, rows)
    else:
        say("nothing changes for these callers")
    for change in difference.changes:
        for error in change.errors:
            say(f"warning: for {change.asker.name} evaluation fails, which denies: {error}")
    _print_unseen(difference.unseen)
    if not difference.complete:
        say(f"only the latest {difference.n_requests} requests were read; there are more in these {days} days")
    if difference.n_unreadable:
        say(f"{difference.n_unreadable} requests do not say who asked and were left out")
    others = f"{counted(difference.n_seen, 'more caller')} in {counted(difference.n_requests, 'request')}"
    strange = f", {counted(difference.n_strangers, 'kind')} of other callers" if difference.n_strangers else ""
    asked = f"{counted(difference.n_profiles, 'profile')}, {others}{strange}"
    say(f"{asked}: {_verdict(difference)}")


def _verdict(difference: Difference) -> str:
    if any(change.widens for change in difference.changes):
        return "somebody may do MORE than before"
    if difference.unseen:
        return "nobody of these may do more than before, but others MIGHT: see the notes"
    return "nobody may do more than before"


def _print_unseen(unseen: tuple[Unseen, ...]) -> None:
    for one in unseen[:_MAX_NOTES]:
        say(f"not seen: {one.where + ': ' if one.where else ''}{one.text}")
    if len(unseen) > _MAX_NOTES:
        say(f"not seen: and {len(unseen) - _MAX_NOTES} more (--json has all)")


def _told(circumstances: tuple[str, ...]) -> str:
    """Which calls or approvals a row is about; nothing where it is about all."""
    more = [f"and {len(circumstances) - _SHOWN} more (--json has all)"] if len(circumstances) > _SHOWN else []
    return "".join(f"; {each}" for each in (*circumstances[:_SHOWN], *more))


def _change_rows(change: Change, difference: Difference) -> Iterator[tuple[str, ...]]:
    """A row for each kind of change of one caller; the caller stands in the first."""
    channels = "all" if len(change.channels) == len(Channel) else ", ".join(change.channels)
    kinds: dict[str, list[str]] = {}
    if change.found_gained:
        kinds["+ discover"] = list(change.found_gained)
    if change.found_lost:
        kinds["- discover"] = list(change.found_lost)
    if change.approve_gained:
        kinds["+ approve"] = list(change.approve_gained)
    if change.approve_lost:
        kinds["- approve"] = list(change.approve_lost)
    calls: dict[str, int] = {}
    for call in change.calls:
        kind = f"{'+' if call.widens else '-'} call: {call.before} -> {call.after}"
        kinds.setdefault(kind, []).append(call.tool_id)
        if not call.widens and not change.circumstances:
            calls[kind] = calls.get(kind, 0) + call.n_calls
    name = f"{change.asker.name} ({change.asker.source})"
    for number, (kind, ids) in enumerate(kinds.items()):
        more = f", and {len(ids) - _SHOWN} more (--json has all)" if len(ids) > _SHOWN else ""
        anybody = sum(difference.calls.get(tool_id, 0) for tool_id in ids)
        counted = f"{calls[kind]} (anybody: {anybody})" if kind in calls else ""
        first = (name, channels) if number == 0 else ("", "")
        yield (*first, kind + _told(change.circumstances), str(len(ids)), ", ".join(ids[:_SHOWN]) + more, counted)
