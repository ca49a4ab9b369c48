"""Whether anything that a caller sees depends on tools that it may not discover: tried on the operator's own catalog.

Above: `cli/verify.py`. Below: `world.py` (catalogs to ask), `variants.py` (how they differ), the surfaces.

    for each group of callers that may discover the same tools
        ask everything in the catalog as it is
        for each variant:  open it ─▶ throw out what policy shows this group ─▶ ask the same ─▶ compare every byte
        first difference ─▶ fewest edits that still make it ─▶ counterexample

Invariants
1. Only edits of tools that no caller of the group may discover on any channel are compared, as the changed catalog's
   own policy decides it; how many were not usable is counted. A caller without any is named, and is no proof.
2. What differs counts, whatever it is: a byte, a header, an exit code, a missing answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from toolcrib.crib import Crib
from toolcrib.errors import ConfigError
from toolcrib.settings import Settings
from toolcrib.types import Tool
from toolcrib.verify.asking import Request, Seat, Surface, comparable
from toolcrib.verify.differences import Counterexample, counterexample, smallest
from toolcrib.verify.groups import Group, groups_of, seats_of, visible_to
from toolcrib.verify.questions import Effort, questions_of
from toolcrib.verify.stand_in import Owner
from toolcrib.verify.variants import Material, added_ids, variants
from toolcrib.verify.world import Edit, EditKind, World, world_of

_MAX_TRIALS = 40
_MAX_REBUILDS = 4
_MANY_TOOLS = 1_000
Answers = dict[Request, bytes]


@dataclass(slots=True, kw_only=True)
class IsolationReport:
    """What was compared.

    Args:
        n_unusable: edits that policy would have shown the caller, so nothing to compare.
        untried: callers from whom policy would hide no tool, whatever was changed: nothing was compared for them.
    """

    n_tools: int
    callers: tuple[str, ...]
    n_callers_in_all: int
    surfaces: tuple[str, ...]
    variants: list[str] = field(default_factory=list)
    n_worlds: int = 0
    n_edits: int = 0
    n_unusable: int = 0
    n_comparisons: int = 0
    n_bytes: int = 0
    untried: list[str] = field(default_factory=list)
    counterexample: Counterexample | None = None

    def to_dict(self) -> dict[str, Any]:
        found = self.counterexample
        return {
            "holds": found is None,
            "tools": self.n_tools,
            "callers": list(self.callers),
            "callers_in_all": self.n_callers_in_all,
            "surfaces": list(self.surfaces),
            "variants": self.variants,
            "worlds": self.n_worlds,
            "edits": self.n_edits,
            "edits_not_usable": self.n_unusable,
            "comparisons": self.n_comparisons,
            "bytes": self.n_bytes,
            "untried": self.untried,
            "counterexample": found.to_dict() if found else None,
        }


def effort_for(n_tools: int, *, thorough: bool) -> Effort:
    """How much to try on a catalog of this size."""
    if thorough:
        return Effort(n_tasks=16, n_names=40, n_edits=400, n_added=24, rounds=2, together=False)
    if n_tools > _MANY_TOOLS:
        return Effort(n_tasks=4, n_names=10, n_edits=150, n_added=10, rounds=1, together=True, brief=True)
    return Effort(n_tasks=5, n_names=12, n_edits=150, n_added=10, rounds=1, together=True)


def verify_isolation(
    settings: Settings,
    *,
    profiles: Mapping[str, Path],
    surfaces: Sequence[Surface],
    max_callers: int = 0,
    thorough: bool = False,
    seed: int = 0,
    on_progress: Callable[[str], None] = lambda _text: None,
) -> IsolationReport:
    """Compare everything that callers see, in catalogs that differ in what they may not discover.

    Args:
        profiles: name -> caller file; at least one.
        max_callers: groups of callers to try, drawn by `seed`; 0 for all.
    Returns:
        What was compared, with a counterexample if there is one; it stops at the first.
    Raises:
        ToolcribError: the operator's catalog, policy or a caller file cannot be used.
        ConfigError: nothing was tried, since policy would hide no tool from any of these callers.
    """
    world, owner = world_of(settings, profiles=profiles), Owner()
    with world.opened(owner=owner) as (folder, crib):
        seats = seats_of(folder, crib, profiles)
        n_tools = len(crib.pipeline().snapshot.tools)
        groups = groups_of(crib, seats, max_groups=max_callers, seed=seed)
        report = IsolationReport(
            n_tools=n_tools,
            callers=tuple(name for group in groups for name in group.names),
            n_callers_in_all=len(profiles),
            surfaces=tuple(surface.name for surface in surfaces),
        )
        trial = _Trial(
            world=world,
            owner=owner,
            surfaces=surfaces,
            effort=effort_for(n_tools, thorough=thorough),
            seed=seed,
            report=report,
            on_progress=on_progress,
        )
        for number, group in enumerate(groups, start=1):
            on_progress(f"{number} of {len(groups)}: {', '.join(group.names)}")
            if report.counterexample is None:
                trial.compare(group, crib, seats)
    if report.n_edits == 0:
        raise ConfigError(
            f"nothing was tried: policy would hide no tool from {', '.join(report.untried)}",
            where=str(settings.policy or settings.path),
            hint="name callers with fewer rights with --profiles DIR, or try more of them with --callers 0",
        )
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    world: World
    owner: Owner
    surfaces: Sequence[Surface]
    effort: Effort
    seed: int
    report: IsolationReport
    on_progress: Callable[[str], None]

    def compare(self, group: Group, crib: Crib, seats: Mapping[str, Seat]) -> None:
        """All variants for one group, until something differs."""
        material = self._material(group, crib)
        asked = [one for surface in self.surfaces for one in surface.requests(material.questions)]
        before = {name: self._ask(seats[name], asked) for name in group.names}
        n_edits = self.report.n_edits
        for name, edits in variants(material, effort=self.effort, seed=self.seed):
            if name not in self.report.variants:
                self.report.variants.append(name)
            with self._usable(edits, group) as (changed, kept):
                if not kept:
                    continue
                self.on_progress(f"  {name}: {len(kept)} tools")
                self.report.n_worlds += 1
                self.report.n_edits += len(kept)
                for caller, seat in changed.items():
                    after = self._ask(seat, asked)
                    differing = [one for one in asked if before[caller][one] != after[one]]
                    self.report.n_comparisons += len(asked)
                    self.report.n_bytes += sum(len(answer) for answer in after.values())
                    if differing:
                        one = min(differing, key=lambda r: (len(r.body), r.surface, r.what))
                        self.on_progress(f"  {caller}: {one.surface}: {one.what} differs; looking for the smallest")
                        self.report.counterexample = self._smallest(
                            one, asked, kept, before=before[caller], after=after, caller=caller, variant=name
                        )
                        return
        if self.report.n_edits == n_edits:
            self.report.untried += group.names

    def _material(self, group: Group, crib: Crib) -> Material:
        """What this group may and may not discover; the operator's own means are left alone."""
        snapshot = crib.pipeline().snapshot
        means = {rule.lookup_tool for rule in crib.settings.resources} - {""}
        hidden = tuple(t for t in snapshot.tools if t.tool_id not in group.visible and t.tool_id not in means)
        withheld = tuple(w for w in snapshot.withheld if w.tool_id not in group.visible and w.tool_id not in means)
        visible = tuple(tool for tool in snapshot.tools if tool.tool_id in group.visible)
        questions = questions_of(visible=visible, hidden=hidden, withheld=withheld, effort=self.effort, seed=self.seed)
        material = Material(visible=visible, hidden=hidden, withheld=withheld, questions=questions)
        new = [i for i in added_ids(material, effort=self.effort, seed=self.seed) if _is_free(i, snapshot.tools)]
        asked = replace(questions, names=(*questions.names, *new[:6]))
        return Material(visible=visible, hidden=hidden, withheld=withheld, questions=asked)

    @contextmanager
    def _usable(self, edits: Sequence[Edit], group: Group) -> Iterator[tuple[dict[str, Seat], tuple[Edit, ...]]]:
        """The changed world, without the edits that would show something to the group: (its seats, the edits kept)."""
        taken = {f"{tool.server_id}.{tool.name}" for tool in self.world.publication.tools}
        kept = tuple(e for e in edits if e.kind is not EditKind.ADDED or e.tool_id not in taken)
        for _ in range(_MAX_REBUILDS):
            if not kept:
                break
            with self.world.changed(kept).opened(owner=self.owner) as (folder, crib):
                seats = seats_of(folder, crib, group.names)
                shown = frozenset[str]().union(*(visible_to(crib, seat.caller) for seat in seats.values()))
                bad = {edit.tool_id for edit in kept} & shown
                if not bad:
                    yield seats, kept
                    return
                self.report.n_unusable += len(bad)
                kept = tuple(edit for edit in kept if edit.tool_id not in bad)
        yield {}, ()

    def _ask(self, seat: Seat, asked: Sequence[Request]) -> Answers:
        self.owner.caller = seat.caller
        told: Answers = {}
        for surface in self.surfaces:
            mine = [one for one in asked if one.surface == surface.name]
            if mine:
                told |= zip(mine, map(comparable, surface.answers(seat, mine)), strict=True)
        return told

    def _smallest(
        self,
        one: Request,
        asked: Sequence[Request],
        edits: Sequence[Edit],
        *,
        before: Answers,
        after: Answers,
        caller: str,
        variant: str,
    ) -> Counterexample:
        """Fewer edits with the same effect. Asked alone where that shows it; else with all that its surface asks."""
        alone = self._answer((), caller, [one])
        same = [one] if alone is not None and self._differs(edits, caller, [one], alone) else None
        together = same or [r for r in asked if r.surface == one.surface]
        base = alone if same and alone is not None else before[one]

        def breaks(part: Sequence[Edit]) -> bool:
            return self._differs(part, caller, together, base, of=one)

        few = smallest(edits, breaks, max_trials=_MAX_TRIALS)
        shown = self._answer(few, caller, together, of=one)
        return counterexample(
            one,
            base,
            after[one] if shown is None or shown == base else shown,
            caller=caller,
            variant=variant,
            tools=[f"{edit.tool_id} {edit.kind}" for edit in few],
        )

    def _differs(
        self, edits: Sequence[Edit], caller: str, asked: Sequence[Request], base: bytes, *, of: Request | None = None
    ) -> bool:
        told = self._answer(edits, caller, asked, of=of)
        return told is not None and told != base

    def _answer(
        self, edits: Sequence[Edit], caller: str, asked: Sequence[Request], *, of: Request | None = None
    ) -> bytes | None:
        """The answer in a world with these edits; None where they would show something to the caller."""
        with self.world.changed(edits).opened(owner=self.owner) as (folder, crib):
            seat = seats_of(folder, crib, [caller])[caller]
            if {edit.tool_id for edit in edits} & visible_to(crib, seat.caller):
                return None
            return self._ask(seat, asked)[of or asked[0]]


def _is_free(tool_id: str, tools: Sequence[Tool]) -> bool:
    return all(tool.tool_id != tool_id for tool in tools)
