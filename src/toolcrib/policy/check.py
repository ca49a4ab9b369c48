"""What is odd about a policy that loads: rules without effect, tools out of everybody's reach or within it.

Below: `matching.py`, `vocabulary.py`, `engine.py`. Above: `policy_desk.py`, which knows the operator's catalog and the
caller profiles and prints what comes back.

Invariants
1. A finding is about the profiles that were tried and says how many there were; it never speaks of "anybody".
2. A note is what may well be meant so. `strict` readers treat it as a finding; nobody else has to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from toolcrib.policy.approving import request_by
from toolcrib.policy.engine import PolicyEngine
from toolcrib.policy.matching import channels_apart, matches
from toolcrib.policy.rules import APPROVE, Rule
from toolcrib.policy.vocabulary import empty_words
from toolcrib.types import BoolArray, Caller, Channel, Decision, Effect, Risk, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One odd thing.

    Args:
        code: stable, for programs. where: file:line, or a file, or "" where it is about the catalog.
        note: it may well be meant so.
        tools: the tool ids that it is about, sorted; `text` names the first few.
    """

    code: str
    where: str
    text: str
    note: bool = False
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A caller that the operator wrote down as an example of those who will ask. `where`: its file."""

    name: str
    caller: Caller
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Reach:
    """What one profile reaches over some channel. Arrays of shape (n_tools,)."""

    profile: Profile
    tools: BoolArray
    needs_approval: BoolArray
    errors: tuple[str, ...]


def check(
    rules: Sequence[Rule],
    *,
    engine: PolicyEngine,
    tools: Sequence[Tool],
    profiles: Sequence[Profile],
    unknown_risk: Mapping[Channel, str],
    narrow: Callable[[Caller, BoolArray], BoolArray] = lambda _caller, permitted: permitted,
) -> tuple[Finding, ...]:
    """Findings and notes, in the order in which they are best read.

    Args:
        rules, engine: of one policy text.
        tools: those in service, sorted by id.
        unknown_risk: "allow" or "needs_approval" for each channel.
        narrow: what routing's hard constraints leave of what policy permits this caller.
    """
    if not rules:
        return (Finding(code="empty_policy", where="", text="the policy has no rule, so nothing is permitted"),)
    reaches = _reaches(rules, engine, tools, profiles, unknown_risk, narrow)
    return (
        *_errors(reaches),
        *_unknown_words(rules, tools),
        *_idle_rules(rules, engine, tools, profiles, unknown_risk),
        *_reachable(reaches, tools),
        *_approvals(rules, engine, reaches, tools),
    )


def _reaches(
    rules: Sequence[Rule],
    engine: PolicyEngine,
    tools: Sequence[Tool],
    profiles: Sequence[Profile],
    unknown_risk: Mapping[Channel, str],
    narrow: Callable[[Caller, BoolArray], BoolArray],
) -> list[_Reach]:
    classes = engine.classes(tools)
    found = []
    for profile in profiles:
        over = [
            engine.eligibility(
                profile.caller,
                tools=tools,
                classes=classes,
                snapshot_version="",
                channel=channel,
                unknown_risk=unknown_risk[channel],
            )
            for channel in channels_apart(rules, unknown_risk)
        ]
        permitted: BoolArray = np.logical_or.reduce([e.permitted for e in over])
        found.append(
            _Reach(
                profile=profile,
                tools=narrow(profile.caller, permitted),
                needs_approval=np.logical_or.reduce([e.needs_approval for e in over]),
                errors=tuple(sorted({error for e in over for error in e.errors})),
            )
        )
    return found


def _errors(reaches: Sequence[_Reach]) -> Iterator[Finding]:
    """A rule that cannot be evaluated denies; here is where."""
    for reach in reaches:
        for error in reach.errors:
            yield Finding(
                code="evaluation_error",
                where=reach.profile.where,
                text=f'evaluation fails for profile "{reach.profile.name}", and what fails is denied: {error}',
            )


# --- rules -----------------------------------------------------------------------------------------------


def _unknown_words(rules: Sequence[Rule], tools: Sequence[Tool]) -> Iterator[Finding]:
    if tools:
        for word in empty_words(rules, tools):
            yield Finding(code="unknown_word", where=word.rule.where, text=f'"{word.rule.label}" {word.text}')


def _idle_rules(
    rules: Sequence[Rule],
    engine: PolicyEngine,
    tools: Sequence[Tool],
    profiles: Sequence[Profile],
    unknown_risk: Mapping[Channel, str],
) -> Iterator[Finding]:
    classes = engine.classes(tools)
    readable = [tool for number, tool in enumerate(classes.representatives) if number not in classes.faults]
    if not profiles or not readable:
        return
    found = matches(rules, tools=readable, callers=[p.caller for p in profiles], unknown_risk=unknown_risk)
    tried = f"for none of the {_n(len(profiles), 'profile')} on any of the {_n(len(tools), 'tool')} in service"
    for rule in rules:
        if rule.label not in found.tried:
            if rule.reads_of("context.target"):
                text = f'"{rule.label}" depends on the resource that a call names, so it was not tried; write a test'
                yield Finding(code="not_tried", where=rule.where, text=text, note=True)
        elif rule.label not in found.matched:
            # A permit that nobody uses is probably a mistake; a forbid that nobody runs into is often just a guard.
            guard = rule.effect == "forbid"
            text = f'"{rule.label}" ({rule.effect}) matches nothing: its conditions hold {tried}'
            yield Finding(code="matches_nothing", where=rule.where, text=text, note=guard)
        elif rule.label not in found.decided:
            text = f'"{rule.label}" (permit) permits nothing: wherever it holds, a forbid overrides it'
            yield Finding(code="overridden", where=rule.where, text=text)


# --- tools and profiles ----------------------------------------------------------------------------------


def _reachable(reaches: Sequence[_Reach], tools: Sequence[Tool]) -> Iterator[Finding]:
    if not reaches or not tools:
        return
    for reach in reaches:
        if not reach.tools.any():
            text = f'profile "{reach.profile.name}" reaches none of the {_n(len(tools), "tool")} in service'
            yield Finding(code="reaches_nothing", where=reach.profile.where, text=text)
    matrix: BoolArray = np.array([reach.tools for reach in reaches], dtype=np.bool_)
    unreached = _ids(tools, ~np.logical_or.reduce(matrix))
    if unreached:
        text = f"{_few(unreached)}: none of the {_n(len(reaches), 'profile')} can reach {_it(unreached)}"
        yield Finding(code="unreachable", where="", text=text, tools=unreached)
    if len(reaches) > 1:
        yield from _open_to_all(tools, np.logical_and.reduce(matrix), n_profiles=len(reaches))


def _open_to_all(tools: Sequence[Tool], everybody: BoolArray, *, n_profiles: int) -> Iterator[Finding]:
    """Everybody may read some things; what everybody may change deserves a second look."""
    for risk in (Risk.DESTRUCTIVE, Risk.WRITE, Risk.READ):
        found = _ids(tools, everybody & np.array([tool.metadata.risk is risk for tool in tools]))
        if found:
            text = f"{_few(found)} (risk {risk}): all {n_profiles} profiles can reach {_it(found)}"
            yield Finding(code="open_to_all", where="", text=text, note=risk is Risk.READ, tools=found)


def _ids(tools: Sequence[Tool], chosen: BoolArray) -> tuple[str, ...]:
    return tuple(tools[number].tool_id for number in map(int, np.flatnonzero(chosen)))


# --- approvals -------------------------------------------------------------------------------------------


def _approvals(
    rules: Sequence[Rule], engine: PolicyEngine, reaches: Sequence[_Reach], tools: Sequence[Tool]
) -> Iterator[Finding]:
    """Calls that wait for a human, and whether some profile is a human who may let them go."""
    asks = [rule for rule in rules if rule.obliges]
    grants = [rule for rule in rules if rule.covers(APPROVE)]
    if asks and not grants:
        text = (
            'no rule for Action::"approve": whoever can reach the approvals may decide on them, except on its own calls'
        )
        yield Finding(code="no_approve_rule", where=asks[0].where, text=text, note=True)
    if not grants or not reaches:
        return
    stuck, used, complete = _granted(engine, reaches, tools, n_grants=len(grants))
    if stuck:
        text = f"{_few(stuck)}: calls wait for an approval that none of the {_n(len(reaches), 'profile')} may grant"
        yield Finding(code="nobody_approves", where="", text=text, tools=stuck)
    for rule in grants if complete else ():
        if rule.label not in used and not (rule.covers("discover") or rule.covers("call")):
            text = f'"{rule.label}" decides on no approval of these profiles\' calls'
            yield Finding(code="matches_nothing", where=rule.where, text=text, note=rule.effect == "forbid")


_MAX_DECISIONS = 20_000
"""Approvals that are tried before it is enough to know that somebody may grant each."""


def _granted(
    engine: PolicyEngine, reaches: Sequence[_Reach], tools: Sequence[Tool], *, n_grants: int
) -> tuple[tuple[str, ...], set[str], bool]:
    """Tools whose calls wait for nobody, the rules that decided on approvals, and whether all of them were tried."""
    class_of = engine.classes(tools).class_of
    waiting: BoolArray = np.logical_or.reduce([reach.tools & reach.needs_approval for reach in reaches])
    stuck: set[int] = set()
    used: set[str] = set()
    n_decisions = 0
    for number in map(int, np.unique(class_of[waiting])):
        tool_idx = int(np.flatnonzero(waiting & (class_of == number))[0])
        granted = False
        for asker in (r.profile for r in reaches if r.tools[tool_idx] and r.needs_approval[tool_idx]):
            for approver in (r.profile for r in reaches):
                if granted and (len(used) == n_grants or n_decisions > _MAX_DECISIONS):
                    break
                decision = _decide(engine, approver=approver.caller, asker=asker.caller, tool=tools[tool_idx])
                n_decisions += 1
                used.update(decision.policies)
                granted = granted or decision.effect is Effect.PERMIT
        if not granted:
            stuck.add(number)
    left = _ids(tools, waiting & np.isin(class_of, list(stuck)))
    return left, used, n_decisions <= _MAX_DECISIONS


def _decide(engine: PolicyEngine, *, approver: Caller, asker: Caller, tool: Tool) -> Decision:
    return engine.decide_approval(approver, tool=tool, request=request_by(asker, tool), channel=Channel.CLI)


# --- words -----------------------------------------------------------------------------------------------

_SHOWN = 5


def _few(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return ", ".join(ids[:_SHOWN]) + more


def _it(ids: Sequence[str]) -> str:
    return "it" if len(ids) == 1 else "them"


def _n(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
