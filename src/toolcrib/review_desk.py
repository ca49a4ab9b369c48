"""The reviewer's desk: what waits with all that is known of it, and the decisions about it.

    queue ─▶ (a reviewer looks) ─▶ approve, approve_server, reject ─▶ lock and log

Floor 4. Above: `crib.py`. Below: `review_queue.py` has what is shown, `curation.py` writes lock and log.

Invariants
1. A decision is logged with the rules of the findings that this desk showed about it.
2. Looking changes nothing: neither lock nor log nor catalog.
3. Findings that somebody let stand are not shown, and how many is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType

from toolcrib import curation
from toolcrib.assembly import Assembly
from toolcrib.catalog.lock import read_lock
from toolcrib.catalog.pins import provenance_digest
from toolcrib.curation import WAITING
from toolcrib.errors import ToolNotFoundError
from toolcrib.review.lint import Finding
from toolcrib.review.signers import Signing, signing
from toolcrib.review.suppress import DEFAULT_FILE, read_suppressions, suppressed
from toolcrib.review_queue import (
    REVIEWED,
    ReviewItem,
    ReviewQueue,
    review_item,
    server_reviews,
    surroundings_of,
    with_pasts,
)
from toolcrib.settings import Settings
from toolcrib.store.protocol import Store
from toolcrib.types import WithheldTool

_MANY = 1_000
"""From so many definitions on, reading them takes long enough to tell of it."""


class ReviewDesk:
    """Shows what waits and carries decisions out, under the settings that `settings` gives at the moment of asking."""

    def __init__(
        self,
        store: Store,
        *,
        assembly: Assembly,
        settings: Callable[[], Settings],
        on_progress: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._on_progress = on_progress
        self._store = store
        self._assembly = assembly
        self._settings = settings
        self._shown: dict[tuple[str, str], tuple[str, ...]] = {}

    def queue(self, wanted: Sequence[str] = (), *, probe: bool = True) -> ReviewQueue:
        """What waits, with findings.

        Args:
            wanted: only tools under these ids or globs (`@digest` is ignored); all if empty.
            probe: whether it is tried how easily what waits is found, too.
        """
        settings = self._settings()
        snapshot = self._assembly.snapshot(settings)
        lock = read_lock(settings.lock)
        is_wanted = _wanted(wanted)
        on_desk = [tool for tool in snapshot.withheld if tool.code in REVIEWED and is_wanted(tool.tool_id)]
        probed = self._assembly.probed(snapshot, settings) if probe and on_desk else {}
        places = surroundings_of(snapshot) if on_desk else {}
        if len(on_desk) >= _MANY:
            self._on_progress(f"reading what waits (definitions: {len(on_desk)})")
        items = [
            review_item(
                tool,
                around=places[tool.server_id],
                pin=lock.tools.get(tool.tool_id),
                probed=probed.get(tool.tool_id) if tool.code in WAITING else None,
                signers=settings.review.signers,
                definition_of=self._store.definition,
            )
            for tool in on_desk
        ]
        items, notes = _unsuppressed(items, settings, in_full=not wanted)
        items = with_pasts(items, events=self._store.reviews(), lock=lock, snapshot=snapshot)
        items.sort(key=lambda item: (-item.gravity, item.tool.tool_id))
        servers = () if wanted else server_reviews(snapshot, lock=lock, items=items, places=places, settings=settings)
        self._shown.update({(i.tool.tool_id, i.tool.digest): tuple(f.rule for f in i.findings) for i in items})
        self._shown.update({(s.server_id, s.digest): tuple(f.rule for f in s.findings) for s in servers})
        return ReviewQueue(items=tuple(items), servers=servers, notes=notes)

    def approve(
        self,
        wanted: Sequence[str] | None,
        *,
        reviewer: str,
        reason: str = "",
        signer: Signing | None = None,
        servers: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[WithheldTool, ...]:
        """As `curation.approve`, with the findings that this desk showed.

        Args:
            servers: new server -> digest of what it is, as the reviewer was shown; its first tool pins it.
        Raises:
            ToolNotFoundError: as there, and where one of these is another server by now; nothing is approved then.
        """
        settings = self._settings()
        snapshot = self._assembly.snapshot(settings)
        for status in snapshot.servers:
            now = provenance_digest(status.provenance)
            if servers.get(status.server_id, now) != now:
                what = f"server {status.server_id!r} is not what you were shown any more"
                raise ToolNotFoundError(what, hint="look at it again: toolcrib review")
        return curation.approve(
            self._store,
            lock=settings.lock,
            snapshot=snapshot,
            wanted=wanted,
            reviewer=reviewer,
            reason=reason,
            findings=self._shown,
            signing=signer,
        )

    def approve_server(
        self, server_id: str, *, digest: str, reviewer: str, reason: str = "", signer: Signing | None = None
    ) -> bool:
        """As `curation.approve_server`, with the findings that this desk showed."""
        settings = self._settings()
        return curation.approve_server(
            self._store,
            lock=settings.lock,
            snapshot=self._assembly.snapshot(settings),
            server_id=server_id,
            digest=digest,
            reviewer=reviewer,
            reason=reason,
            findings=self._shown,
            signing=signer,
        )

    def reject(self, wanted: Sequence[str], *, reviewer: str, reason: str = "") -> tuple[str, ...]:
        """As `curation.reject`, with the findings that this desk showed."""
        settings = self._settings()
        return curation.reject(
            self._store,
            lock=settings.lock,
            snapshot=self._assembly.snapshot(settings),
            wanted=wanted,
            reviewer=reviewer,
            reason=reason,
            findings=self._shown,
        )

    def signer(self, key_file: Path) -> Signing:
        """Whoever of the configured signers holds the key in this file.

        Raises:
            ConfigError: it holds no key, or nobody's.
        """
        return signing(key_file, self._settings().review.signers)


def _wanted(asked: Sequence[str]) -> Callable[[str], bool]:
    """Whether a tool id is among these ids and globs; all are where there are none."""
    ids = {one.partition("@sha256:")[0] for one in asked}
    globs = [one for one in ids if any(character in one for character in "*?[")]
    return lambda tool_id: not ids or tool_id in ids or any(fnmatchcase(tool_id, glob) for glob in globs)


def _unsuppressed(
    items: Sequence[ReviewItem], settings: Settings, *, in_full: bool
) -> tuple[list[ReviewItem], tuple[str, ...]]:
    """The items without the findings that somebody let stand, and what to say of those decisions.

    Args:
        in_full: these are all items, so that a decision which covers none of their findings has nothing to do.
    """
    named = settings.review.suppressions
    path = settings.resolve(named or DEFAULT_FILE)
    if not items or not (named or path.exists()):
        return list(items), ()
    found: dict[str, tuple[Finding, ...]] = {}
    for item in items:
        found[item.tool.tool_id] = (*found.get(item.tool.tool_id, ()), *item.findings)
    done = suppressed(found, read_suppressions(path), today=datetime.now(UTC).date())
    left = [replace(i, findings=tuple(f for f in i.findings if f in done.kept[i.tool.tool_id])) for i in items]
    notes = [f"{path.name} lets {done.n_hidden} of the findings stand"] if done.n_hidden and in_full else []
    notes += [f"{path.name}: {one.rule} on {one.tool} ended on {one.expires}" for one in done.expired if in_full]
    return left, tuple(notes)
