"""From settings and store to a pipeline: snapshot, policy and index built together.

Floor 4. Above: `crib.py`, which asks for another one whenever something it rests on has changed.

Invariants
1. Nothing is permitted by what cannot be read: a missing catalog, a damaged lock, a broken policy raise here.
2. The index is kept on disk under a key of what it was built from; another key is another index, never a stale one.
3. A policy text that stops being valid while this process serves leaves the last good one in force (`[policy]
   on_broken`), and the pipeline says so; a missing, unreadable or empty file, and a broken one at the start, permit
   nothing.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from toolcrib.catalog.lock import read_lock
from toolcrib.catalog.pins import Lock
from toolcrib.catalog.servers import NOT_APPROVED, blocked_servers
from toolcrib.catalog.snapshot import build_snapshot
from toolcrib.curation import rejected_pairs
from toolcrib.errors import PolicyError, PolicySyntaxError, RetrievalError, StoreError
from toolcrib.gate.arguments import ArgumentChecker
from toolcrib.intake import probed
from toolcrib.models import Absent, embedder_for, leaves_machine
from toolcrib.pipeline import Pipeline, PipelineOptions
from toolcrib.policy.engine import PolicyEngine
from toolcrib.policy.shipped import default_policy_text
from toolcrib.recorded import metadata_rows, options_text
from toolcrib.retrieval.calibration import Calibration
from toolcrib.retrieval.confidence import DEFAULT_FLOOR, basis_of, weights_fault
from toolcrib.retrieval.dense import Embedder, bundled_embedder
from toolcrib.retrieval.embedders.kept import watched
from toolcrib.retrieval.index import Index, index_key, model_id
from toolcrib.retrieval.learning import NOTHING, Learned
from toolcrib.retrieval.ranker import trees_for
from toolcrib.review.lint import Finding
from toolcrib.review.signatures import unsigned_tools
from toolcrib.review.signers import unsigned_servers
from toolcrib.routing.facts import routing_facts
from toolcrib.selection.tokens import estimate_tokens
from toolcrib.sessions import listing_credentials
from toolcrib.settings import Settings
from toolcrib.store.protocol import Store
from toolcrib.types import CatalogSnapshot, Channel, Publication

_KEPT_INDEXES = 3
"""Of each model."""
_KEPT_MODELS = 3
RETRY_S = 60.0
"""A model that did not answer is tried again after this; each time in vain, after twice as long."""
MAX_RETRY_S = 960.0
_MANY = 5_000
"""From so many tools on, building an index takes long enough to tell of it."""
_log = logging.getLogger(__name__)


class Assembly:
    """Builds pipelines; keeps what is costly and does not change between them (the embedder, compiled schemas)."""

    def __init__(
        self, store: Store, *, on_progress: Callable[[str], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._now = now
        self._retry_at: float | None = None
        self._retry_s = RETRY_S
        self._n_tries = 0
        self._on_progress = on_progress
        self._checker = ArgumentChecker()
        self._unkept: tuple[Index, bool] | None = None
        self._embedder: tuple[object, Embedder | None] | None = None
        self._last_policy: tuple[Path | None, PolicyEngine] | None = None

    def snapshot(self, settings: Settings, *, publication: Publication | None = None) -> CatalogSnapshot:
        """The catalog as published, approved and described now.

        Args:
            publication: what is about to be published; None: what is published.
        Raises:
            StoreError: nothing was published yet, or the store cannot be read.
            CatalogError: the lock is damaged.
        """
        publication = publication or self._store.current()
        if publication is None:
            raise StoreError("there is no catalog yet", where=str(settings.root), hint="run `toolcrib refresh`")
        lock = read_lock(settings.lock)
        return build_snapshot(
            publication,
            approved=lock.approved,
            rejected=rejected_pairs(self._store.reviews()),
            servers=settings.servers,
            rules=settings.tools,
            blocked={
                **_unsigned_servers(lock, settings),
                **blocked_servers(
                    publication, lock=lock, servers=settings.servers, credentials=listing_credentials(settings)
                ),
            },
            unsigned=unsigned_tools(lock, settings.review),
        )

    def probed(self, snapshot: CatalogSnapshot, settings: Settings) -> Mapping[str, Finding]:
        """What the probe at intake found in the definitions that wait, by tool id."""
        embedder = None if settings.retrieval.embedder == "none" else bundled_embedder()
        return probed(snapshot, folder=settings.store / "probe", embedder=embedder, on_progress=self._on_progress)

    def pipeline(self, settings: Settings, *, publication: Publication | None = None) -> Pipeline:
        """A pipeline over what is in force now, or will be. Raises as `snapshot`, and PolicyError."""
        snapshot = self.snapshot(settings, publication=publication)
        policy, policy_fault = self._policy(settings)
        embedder = self._embedder_of(settings)
        options = self._options(settings, embedder)
        self._store.put_catalog(snapshot.version, catalog_summary(snapshot))
        self._store.keep_version("options", options.digest, options_text(options))
        index = self._index(snapshot, settings, embedder)
        self._plan_retry(embedder, index)
        return self._joined(
            snapshot,
            policy=policy,
            policy_fault=policy_fault,
            index=index,
            options=options,
            learned=self._learned(settings),
        )

    def tries(self) -> int:
        """Grows by one when a model that did not answer for the latest pipeline is worth another try."""
        if self._retry_at is not None and self._now() >= self._retry_at:
            self._retry_at = None
            self._n_tries += 1
        return self._n_tries

    def _plan_retry(self, embedder: Embedder | None, index: Index | None) -> None:
        unkept, unanswered = self._unkept or (None, False)
        waits = isinstance(embedder, Absent) or (index is not None and index is unkept and unanswered)
        self._retry_at = self._now() + self._retry_s if waits else None
        self._retry_s = min(2 * self._retry_s, MAX_RETRY_S) if waits else RETRY_S

    def past_pipeline(
        self,
        settings: Settings,
        *,
        snapshot: CatalogSnapshot,
        policy: PolicyEngine,
        options: PipelineOptions,
        learned: Learned = NOTHING,
    ) -> Pipeline:
        """A pipeline over what was in force before, with today's models; for replays only.

        Keeps no index, but vectors that a model on this machine makes. Sends no definition to a hosted model: where
        no index of that catalog is kept, the pipeline has none.
        """
        embedder = self._embedder_of(settings)
        index = self._index(snapshot, settings, embedder, keep=False, build=not leaves_machine(settings))
        return self._joined(snapshot, policy=policy, policy_fault="", index=index, options=options, learned=learned)

    def _joined(
        self,
        snapshot: CatalogSnapshot,
        *,
        policy: PolicyEngine,
        policy_fault: str,
        index: Index | None,
        options: PipelineOptions,
        learned: Learned,
    ) -> Pipeline:
        return Pipeline(
            snapshot=snapshot,
            policy=policy,
            policy_fault=policy_fault,
            classes=policy.classes(snapshot.tools),
            facts=routing_facts(snapshot.tools),
            index=index,
            options=options,
            cost=estimate_tokens,
            checker=self._checker,
            learned=learned,
        )

    def _options(self, settings: Settings, embedder: Embedder | None) -> PipelineOptions:
        calibration = self._calibration(settings, embedder)
        if why := weights_fault():
            self._on_progress(f"confidence goes by its built-in weights: {why}")
        floor = settings.retrieval.confidence_floor
        if floor is None:
            floor = DEFAULT_FLOOR if calibration is None else calibration.floor
        return PipelineOptions(
            confidence_floor=floor,
            top_k=settings.retrieval.top_k,
            adapt=settings.retrieval.adapt,
            rerank=settings.retrieval.rerank and self._ranker_is_sound(embedder),
            unknown_risk=unknown_risk(settings),
            rules=settings.routing.rules,
            fallback=settings.fallback.tools,
            resource_rules=settings.resources,
            record_arguments=settings.trace.record_arguments,
            calibration=calibration,
        )

    def _calibration(self, settings: Settings, embedder: Embedder | None) -> Calibration | None:
        """The operator's calibration; none where its file cannot be used: the built-in floor then counts (I12)."""
        if not settings.retrieval.calibration:
            return None
        path = settings.resolve(settings.retrieval.calibration)
        try:
            found = Calibration.read(path)
            if found.basis != basis_of(model_id(embedder)):
                raise RetrievalError(
                    "the calibration was made with another model or release",
                    where=str(path),
                    hint="run `toolcrib calibrate` again",
                )
        except RetrievalError as fault:
            _log.error("confidence is not calibrated: %s", fault)
            self._on_progress(f"confidence is not calibrated: {fault}")
            return None
        return found

    def _ranker_is_sound(self, embedder: Embedder | None) -> bool:
        """Whether the packaged ranker can be read; search goes on without one that cannot (I12)."""
        try:
            trees_for(model_id(embedder))
        except RetrievalError as fault:
            _log.error("searching without the learned ranker: %s", fault)
            self._on_progress(f"searching without the learned ranker: {fault}")
            return False
        return True

    def _learned(self, settings: Settings) -> Learned:
        """What was learned from use; nothing where the file cannot be used: that costs only what was learned (I12)."""
        if not settings.retrieval.learned:
            return NOTHING
        try:
            return Learned.read(settings.resolve(settings.retrieval.learned))
        except RetrievalError as fault:
            _log.error("searching without what was learned from use: %s", fault)
            self._on_progress(f"searching without what was learned from use: {fault}")
            return NOTHING

    def _policy(self, settings: Settings) -> tuple[PolicyEngine, str]:
        """The policy in force, and why it is not the one on disk ("" when it is).

        Raises:
            PolicyError: the file cannot be read. PolicySyntaxError: it is broken, and nothing good came before it.
        """
        last, self._last_policy = self._last_policy, None
        text = policy_text(settings.policy)
        try:
            engine, fault = PolicyEngine.from_text(text, source=str(settings.policy or "built-in")), ""
            self._store.keep_version("policy", engine.version, default_policy_text() if text is None else text)
        except PolicySyntaxError as error:
            if settings.policy_options.on_broken == "deny" or last is None or last[0] != settings.policy:
                raise
            engine, fault = last[1], str(error)
            _log.error("the policy is broken, the last good one (%s) stays in force: %s", engine.version, error)
            self._on_progress(f"the policy is broken, the last good one stays in force: {error}")
        self._last_policy = (settings.policy, engine)
        return engine, fault

    def _index(
        self,
        snapshot: CatalogSnapshot,
        settings: Settings,
        embedder: Embedder | None,
        *,
        keep: bool = True,
        build: bool = True,
    ) -> Index | None:
        """The index of this snapshot: from disk if it was built before, else, with `build`, built, with `keep`, kept.

        None when it cannot be built: the crib then offers the configured safe set and says `degraded`.
        """
        try:
            key = index_key(snapshot.tools, embedder)
            path = settings.store / "index" / f"{_model_part(embedder)}-{key.removeprefix('sha256:')[:32]}.idx"
            known = self._load(path, snapshot, embedder, key)
            if known is None and not build and self._unkept is not None and self._unkept[0].key == key:
                return self._unkept[0]
            return known if known is not None or not build else self._build(path, snapshot, embedder, keep=keep)
        except RetrievalError as fault:
            self._on_progress(f"no index, so only the configured safe set can be offered: {fault}")
            return None

    def _embedder_of(self, settings: Settings) -> Embedder | None:
        """The embedder of these settings, made once; one that could not be reached or read is looked for again.

        Raises:
            ConfigError: it cannot be made.
        """
        asked = (settings.retrieval.embedder, settings.retrieval.model, settings.root, settings.store)
        if self._embedder is None or self._embedder[0] != asked or isinstance(self._embedder[1], Absent):
            try:
                self._embedder = (asked, embedder_for(settings))
            except RetrievalError as fault:
                _log.error("searching by words alone: %s", fault)
                self._on_progress(f"searching by words alone: {fault}")
                self._embedder = (asked, Absent(model_id="absent"))
        return self._embedder[1]

    def _load(self, path: Path, snapshot: CatalogSnapshot, embedder: Embedder | None, key: str) -> Index | None:
        if not path.exists():
            return None
        try:
            index = Index.load(path, tools=snapshot.tools, embedder=embedder, expect_key=key)
        except RetrievalError as fault:
            self._on_progress(f"building the index again: {fault.what}")
            return None
        with suppress(OSError):
            os.utime(path)  # what is in use is not what goes first
        return index

    def _build(self, path: Path, snapshot: CatalogSnapshot, embedder: Embedder | None, *, keep: bool) -> Index:
        self._on_progress(f"building the index (tools: {len(snapshot.tools)})")
        slow = watched(embedder)
        if slow is not None:
            slow.watch(len(snapshot.tools), self._on_progress)
        index = self._built(path.parent, snapshot, embedder)
        if index.degraded or (slow is not None and slow.n_failed):
            self._on_progress("some tools have no vector and are found by words alone; the next index tries again")
            if keep:
                self._unkept = (index, bool(index.degraded or getattr(slow, "n_unanswered", 0)))
            return index
        if not keep:
            return index
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # definitions are for the owner's eyes
            index.save(path)
            _prune(path.parent)
        except OSError as fault:
            self._on_progress(f"the index could not be kept and will be built again next time: {fault}")
        return index

    def _built(self, folder: Path, snapshot: CatalogSnapshot, embedder: Embedder | None) -> Index:
        """An index of this snapshot; what the model's latest kept one knows of unchanged tools is taken from there."""
        told = self._telling("indexing")
        for kept in _newest_first(folder, f"{_model_part(embedder)}-*.idx")[:1]:
            try:
                return Index.update_file(kept, tools=snapshot.tools, embedder=embedder, on_progress=told)
            except RetrievalError as fault:
                self._on_progress(f"building the index anew: {fault.what}")
        return Index.build(snapshot.tools, embedder=embedder, on_progress=told)

    def _telling(self, doing: str) -> Callable[[int, int], None]:
        """Progress in words, each tenth part once, and only of what takes a while."""
        last = [0]

        def told(n_done: int, n_all: int) -> None:
            tenth = 10 * n_done // max(1, n_all)
            if n_all >= _MANY and tenth > last[0]:
                last[0] = tenth
                self._on_progress(f"{doing} {n_done} of {n_all}")

        return told


def _unsigned_servers(lock: Lock, settings: Settings) -> dict[str, tuple[str, str]]:
    """Servers whose approval lacks signatures, as `blocked_servers` has those that are not what was approved."""
    lacking = unsigned_servers(lock, settings.review)
    held = [spec.server_id for spec in settings.servers if spec.on_provenance == "block"]
    return {server_id: (NOT_APPROVED, lacking[server_id]) for server_id in held if server_id in lacking}


def _model_part(embedder: Embedder | None) -> str:
    """How the names of the index files of one model begin."""
    return sha256(model_id(embedder).encode()).hexdigest()[:12]


def _newest_first(folder: Path, pattern: str) -> list[Path]:
    found: list[tuple[float, Path]] = []
    for file in folder.glob(pattern):
        with suppress(FileNotFoundError):  # another process keeps and drops indexes, too
            found.append((file.stat().st_mtime, file))
    return [file for _, file in sorted(found, reverse=True)]


def _prune(folder: Path) -> None:
    """Keep the latest index files of the models that were used last. Raises OSError."""
    by_model: dict[str, list[Path]] = {}
    for file in _newest_first(folder, "*.idx"):
        by_model.setdefault(file.name.rpartition("-")[0], []).append(file)
    for place, files in enumerate(by_model.values()):
        for old in files[_KEPT_INDEXES if place < _KEPT_MODELS else 0 :]:
            old.unlink(missing_ok=True)


def catalog_summary(snapshot: CatalogSnapshot) -> dict[str, object]:
    """What a catalog version held, in tool-number order: enough to explain a trace later, and to replay it."""
    return {
        "tools": [(t.tool_id, t.digest, t.state) for t in snapshot.tools],
        "withheld": [(w.tool_id, w.code, w.reason) for w in snapshot.withheld],
        **metadata_rows(snapshot.tools),
    }


def policy_text(path: Path | None) -> str | None:
    """The text of a policy file; None for the built-in policy. Raises PolicyError."""
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise PolicyError(f"the policy cannot be read: {fault}", where=str(path)) from fault


def unknown_risk(settings: Settings) -> dict[Channel, str]:
    """What a call to a tool of unknown risk needs over each channel: "allow" or "needs_approval"."""
    risk = settings.gate.unknown_risk
    asked = {channel: "needs_approval" if channel is Channel.HTTP else "allow" for channel in Channel}
    return asked if risk == "auto" else dict.fromkeys(Channel, risk)
