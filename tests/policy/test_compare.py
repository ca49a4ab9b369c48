"""What one policy changes against another: gains, losses, and which of them widen."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.policy.compare import Asker, CallChange, Change, compare
from toolcrib.policy.engine import PolicyEngine
from toolcrib.types import Channel, Effect, Risk

from .making import PERMIT_ALL, a_caller, a_tool

TOOLS = (a_tool("files.read"), a_tool("files.write", risk=Risk.WRITE))
READS = 'permit (principal, action, resource) when { resource.risk == "read" };\n'
ASKS = PERMIT_ALL + (
    '@id("ask") @obligation("needs_approval") forbid (principal, action == Action::"call", resource)\n'
    'when { resource.risk == "write" } unless { context.approved };\n'
)
SHOWN = PERMIT_ALL + 'forbid (principal, action == Action::"call", resource) when { resource.risk == "write" };\n'
FORBID, ASK, PERMIT = Effect.FORBID, Effect.NEEDS_APPROVAL, Effect.PERMIT


def changes(old: str, new: str, **asker: Any) -> tuple[Change, ...]:
    who = Asker(**{"name": "ann", "source": "profile", "caller": a_caller("ann"), **asker})
    engines = [PolicyEngine.from_text(text) for text in (old, new)]
    return compare(*engines, tools=TOOLS, askers=[who], unknown_risk=dict.fromkeys(Channel, "allow"))


@pytest.mark.parametrize("text", [READS, ASKS, SHOWN, PERMIT_ALL, ""], ids=["reads", "asks", "shown", "all", "empty"])
def test_a_policy_changes_nothing_against_itself(text: str) -> None:
    assert changes(text, text) == ()


@pytest.mark.parametrize(
    ("old", "new", "gained", "lost", "call", "widens"),
    [
        (READS, PERMIT_ALL, ("files.write",), (), (FORBID, PERMIT), True),
        (PERMIT_ALL, READS, (), ("files.write",), (PERMIT, FORBID), False),
        (PERMIT_ALL, ASKS, (), (), (PERMIT, ASK), False),
        (ASKS, PERMIT_ALL, (), (), (ASK, PERMIT), True),
        (SHOWN, ASKS, (), (), (FORBID, ASK), True),
        (ASKS, SHOWN, (), (), (ASK, FORBID), False),
        (READS, SHOWN, ("files.write",), (), None, True),
    ],
    ids=["gain", "loss", "approval-asked", "approval-dropped", "approval-opens", "approval-closes", "found-only"],
)
def test_gains_and_losses_of_finding_and_calling_are_told_apart(
    old: str, new: str, gained: Any, lost: Any, call: Any, widens: bool
) -> None:
    (change,) = changes(old, new)
    assert (change.found_gained, change.found_lost, change.widens) == (gained, lost, widens)
    expected = () if call is None else (CallChange(tool_id="files.write", before=call[0], after=call[1]),)
    assert change.calls == expected


def test_a_change_that_narrows_and_widens_widens() -> None:
    (change,) = changes(READS, READS.replace('"read"', '"write"'))
    assert (change.found_gained, change.found_lost, change.widens) == (("files.write",), ("files.read",), True)


def test_channels_with_the_same_change_are_one_and_others_apart() -> None:
    web = PERMIT_ALL + 'forbid (principal, action, resource) when { context.channel == "http" };\n'
    (change,) = changes(PERMIT_ALL, web)
    assert change.channels == (Channel.HTTP,)
    assert changes(PERMIT_ALL, web, channels=(Channel.CLI,)) == ()
    (everywhere,) = changes(PERMIT_ALL, READS)
    assert everywhere.channels == tuple(Channel)


def test_calls_of_what_is_lost_are_counted_and_of_what_is_gained_are_not() -> None:
    (lost,) = changes(PERMIT_ALL, READS, calls={"files.write": 7, "files.read": 9})
    assert (lost.calls[0].n_calls, lost.n_calls_lost) == (7, 7)
    (gained,) = changes(READS, PERMIT_ALL, calls={"files.write": 7})
    assert gained.n_calls_lost == 0


def test_a_new_policy_that_fails_to_evaluate_says_so() -> None:
    broken = PERMIT_ALL + '@id("sum") forbid (principal, action, resource) when { 9223372036854775807 + 1 == 0 };\n'
    (change,) = changes(PERMIT_ALL, broken)
    assert change.found_lost == ("files.read", "files.write") and not change.widens
    assert any("sum" in error for error in change.errors)
