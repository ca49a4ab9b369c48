"""The operator's desk for policy: a policy text against this crib's catalog, caller profiles and traces.

Floor 4. Above: `cli/policy.py`. Below: `policy/` (check, cases, compare, why), `policy_past.py`, `routing/`,
`identity/`, the store.

    settings ─┬─ policy in force, or a file ─▶ rules, engine ─┐
              ├─ profiles/*.json ─▶ callers ──────────────────┼─▶ check, run_tests, difference, explanation
              ├─ catalog in service ──────────────────────────┤
              └─ traces ─▶ who asked, what ran ───────────────┘

Invariants
1. Nothing here changes anything, and nothing here is what a caller sees: all of it is the operator's view.
2. The policy in force may be broken; a desk opens all the same, since it is what the operator mends it with.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from toolcrib.assembly import Assembly, policy_text, unknown_risk
from toolcrib.errors import ConfigError, StoreError, ToolNotFoundError
from toolcrib.identity.callers import caller_from_file, caller_from_mapping, local_operator
from toolcrib.policy.cases import CaseResult, cases_of, run_case
from toolcrib.policy.changes import Asker, Change, Unseen
from toolcrib.policy.check import Finding, Profile, check
from toolcrib.policy.compare import compare
from toolcrib.policy.loaded import LoadedPolicy
from toolcrib.policy.why import Why, why
from toolcrib.policy_past import past_requests
from toolcrib.routing.admissible import admissible
from toolcrib.settings import Settings, load_settings
from toolcrib.settings.lines import lines_of
from toolcrib.store.protocol import Store
from toolcrib.store.sqlite import SqliteStore
from toolcrib.types import BoolArray, Caller, CatalogSnapshot, Channel, RouteMove


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Difference:
    """What a policy changes, and on what this rests.

    Args:
        changes: those of profiles, of callers in the traces, and then what opens to strangers.
        unseen: what may widen and could not be tried. n_strangers: kinds of callers tried besides those at hand.
        calls: tool id -> calls that ran, of anybody, in the days looked at.
        n_requests: traces that were read. complete: whether those are all of the days asked for.
        n_unreadable: traces that do not say who asked.
    """

    changes: tuple[Change, ...]
    unseen: tuple[Unseen, ...]
    n_strangers: int
    calls: Mapping[str, int]
    n_profiles: int
    n_seen: int
    n_requests: int
    complete: bool
    n_unreadable: int

    @property
    def widens(self) -> bool:
        """Whether somebody may do more than before, or might, unseen."""
        return bool(self.unseen) or any(change.widens for change in self.changes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolExplanation:
    """Why a caller may or may not use a tool. `withheld`: why it is not in service; policy is then not asked.

    `dropped`: what routing's hard constraints say against it, whatever policy says.
    """

    tool_id: str
    withheld: str
    why: Why | None
    dropped: RouteMove | None


class PolicyDesk:
    """One crib's settings, catalog and profiles, as they are now."""

    def __init__(self, settings: Settings, *, store: Store, snapshot: CatalogSnapshot | None) -> None:
        """`snapshot`: None before the first refresh; only a policy's text can be checked then."""
        self.settings = settings
        self.profiles = _profiles(settings)
        self._store = store
        self._catalog = snapshot
        self._unknown_risk = unknown_risk(settings)

    @classmethod
    @contextmanager
    def open(cls, folder: Path) -> Iterator[PolicyDesk]:
        """The desk of the crib in this folder. Needs no valid policy, and builds no index.

        Raises:
            ConfigError: the settings or a profile cannot be read. CatalogError, StoreError: the catalog cannot be.
        """
        settings = load_settings(folder)
        store = SqliteStore(settings.store / "store.db")
        try:
            published = store.current() is not None
            assembly = Assembly(store, on_progress=lambda _text: None)
            yield cls(settings, store=store, snapshot=assembly.snapshot(settings) if published else None)
        finally:
            store.close()

    @property
    def has_catalog(self) -> bool:
        return self._catalog is not None

    @property
    def snapshot(self) -> CatalogSnapshot:
        """The catalog. Raises StoreError where there is none yet."""
        if self._catalog is None:
            raise StoreError("there is no catalog yet", where=str(self.settings.root), hint="run `toolcrib refresh`")
        return self._catalog

    def policy(self, path: Path | None = None) -> LoadedPolicy:
        """The policy in this file, or by default the one that the settings name.

        Raises:
            PolicyError: the file cannot be read. PolicySyntaxError: it is no valid policy.
        """
        path = path or self.settings.policy
        return LoadedPolicy.from_text(policy_text(path), source=str(path or "built-in"))

    def caller(self, file: Path | None) -> Caller:
        """The caller in this file, or the local operator."""
        crib = self.settings.crib
        if file is not None:
            return caller_from_file(file, environment=crib.environment, region=crib.region)
        return local_operator(
            self.settings.identity.local,
            environment=crib.environment,
            region=crib.region,
            where=f"{self.settings.path} [identity.local]",
        )

    # --- check

    def check(self, policy: LoadedPolicy) -> tuple[Finding, ...]:
        """What is odd about a policy, tried on the catalog and the profiles; without either, a note says so."""
        notes = []
        if not self.has_catalog:
            notes.append("there is no catalog yet, so no rule was tried: run `toolcrib refresh`")
        if not self.profiles:
            notes.append(f"there are no caller profiles in {self.settings.profiles}, so no rule was tried on a caller")
        found = check(
            policy.rules,
            engine=policy.engine,
            tools=self.snapshot.tools if self.has_catalog else (),
            profiles=self.profiles if self.has_catalog else (),
            unknown_risk=self._unknown_risk,
            narrow=self._narrow,
        )
        return (*(Finding(code="not_tried", where="", text=text, note=True) for text in notes), *found)

    def _narrow(self, caller: Caller, permitted: BoolArray) -> BoolArray:
        left, _ = admissible(self.snapshot.tools, caller=caller, permitted=permitted, rules=self.settings.routing.rules)
        return left

    # --- tests

    def run_tests(self, path: Path, policy: LoadedPolicy) -> tuple[CaseResult, ...]:
        """How each case of a file goes.

        Raises:
            ConfigError: the file cannot be read, or a case in it cannot be understood.
        """
        text = _read_text(path)
        try:
            document = tomllib.loads(text)
        except (ValueError, RecursionError) as fault:  # a number of thousands of digits is a ValueError, too
            raise ConfigError(f"the policy tests are not TOML: {fault}", where=str(path)) from fault
        lines = lines_of(text, source=str(path))
        cases = cases_of(
            document, where=lines.where, profiles={p.name: p.caller for p in self.profiles}, described=self._described
        )
        labels = frozenset(rule.label for rule in policy.rules)
        withheld = {tool.tool_id: f"{tool.tool_id} ({tool.code})" for tool in self.snapshot.withheld}
        return tuple(
            run_case(
                case,
                engine=policy.engine,
                tools=self.snapshot.tools,
                withheld=withheld,
                labels=labels,
                unknown_risk=self._unknown_risk,
            )
            for case in cases
        )

    def _described(self, fields: Mapping[str, Any], where: str) -> Caller:
        crib = self.settings.crib
        return caller_from_mapping(fields, environment=crib.environment, region=crib.region, where=where)

    # --- difference

    def difference(self, old: LoadedPolicy, new: LoadedPolicy, *, days: int) -> Difference:
        """What changes with `new` in force: for each profile, for each caller that the traces of these days know, and
        for anybody else to whom it opens something.

        Callers whom neither policy can tell apart are one; a caller with the rights of a profile counts as that one.

        Raises:
            ConfigError: there is nobody or nothing to compare for; that nothing changes would then prove nothing.
        """
        with_subject = old.engine.names_subjects or new.engine.names_subjects
        past = past_requests(self._store, days=days, with_subject=with_subject)
        if not self.snapshot.tools:
            raise ConfigError(
                "no tool is in service, so there is nothing to compare",
                where=str(self.settings.root),
                hint="run `toolcrib refresh`, and `toolcrib review` for what waits",
            )
        if not self.profiles and not past.seen:
            raise ConfigError(
                f"there is nobody to compare for: no caller profile, and no request in the last {days} days",
                where=str(self.settings.profiles),
                hint="write a JSON file for each kind of caller there; see [crib] profiles",
            )
        seen = dict(past.seen)
        askers = []
        for profile in self.profiles:
            same = seen.pop(profile.caller.fingerprint(with_subject=with_subject), None)
            calls = same.calls if same else {}
            askers.append(Asker(name=profile.name, source="profile", caller=profile.caller, calls=calls))
        askers += [group.asker() for group in seen.values()]
        found = compare(old, new, tools=self.snapshot.tools, askers=askers, unknown_risk=self._unknown_risk)
        return Difference(
            changes=found.changes,
            unseen=found.unseen,
            n_strangers=found.n_strangers,
            calls=past.calls,
            n_profiles=len(self.profiles),
            n_seen=len(seen),
            n_requests=past.n_requests,
            complete=past.complete,
            n_unreadable=past.n_unreadable,
        )

    # --- explanation

    def explanation(
        self,
        tool_id: str,
        *,
        policy: LoadedPolicy,
        caller: Caller,
        action: Literal["discover", "call"],
        channel: Channel,
        approved: bool = False,
    ) -> ToolExplanation:
        """Why this caller may, or may not, discover or call this tool.

        Raises:
            ToolNotFoundError: no server lists such a tool.
        """
        tool = next((tool for tool in self.snapshot.tools if tool.tool_id == tool_id), None)
        if tool is None:
            held = next((tool for tool in self.snapshot.withheld if tool.tool_id == tool_id), None)
            if held is None:
                raise ToolNotFoundError(f"no tool {tool_id!r} in the catalog", hint="`toolcrib tools` lists tool ids")
            return ToolExplanation(tool_id=tool_id, withheld=f"{held.code}: {held.reason}", why=None, dropped=None)
        found = why(
            policy.rules,
            engine=policy.engine,
            caller=caller,
            tool=tool,
            action=action,
            channel=channel,
            unknown_risk=self._unknown_risk[channel],
            approved=approved,
        )
        everything = np.ones(1, dtype=np.bool_)
        _, moves = admissible([tool], caller=caller, permitted=everything, rules=self.settings.routing.rules)
        return ToolExplanation(tool_id=tool_id, withheld="", why=found, dropped=next(iter(moves), None))


def _profiles(settings: Settings) -> tuple[Profile, ...]:
    """The callers in the profiles folder, by name; none where there is no such folder."""
    crib = settings.crib
    return tuple(
        Profile(
            name=path.stem,
            caller=caller_from_file(path, environment=crib.environment, region=crib.region),
            where=str(path),
        )
        for path in sorted(settings.profiles.glob("*.json"))
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as fault:
        hint = "write one beside toolcrib.toml, or name it: toolcrib policy test FILE"
        raise ConfigError(f"the policy tests cannot be read: {fault}", where=str(path), hint=hint) from fault
