"""What is in force now: settings, policy, lock and catalog as they are on disk and in the store at this moment.

Floor 4. Above: `crib.py`. Below: `assembly.py` builds the pipelines.

    settings ┐
    policy   ├─▶ mark ── changed? ─▶ prepared for just this mark? ─▶ one reference swapped
    lock     │                       └─ else a new Pipeline, made now
    store    ┘                          └─ cannot be made: nothing is permitted, until it can (I2)

Invariants
1. Looked at on every request: what was changed counts on the next one. A model that did not answer is tried again.
2. One pipeline or one fault, never both; a fault is raised to whoever asks.
3. What was prepared counts only for the very mark it was prepared for. Whatever else changed meanwhile, a review or a
   policy, makes it worthless, and the request builds as if nothing had been prepared.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolcrib.assembly import Assembly
from toolcrib.errors import ToolcribError
from toolcrib.marks import file_mark
from toolcrib.pipeline import Pipeline
from toolcrib.settings import Settings, load_settings
from toolcrib.store.protocol import Store
from toolcrib.types import CatalogSnapshot, Publication

_MAX_REBUILDS = 3
_MAX_VIEWS = 8
"""Made in advance; each costs the first request of its caller a part of a second over ten thousand tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _World:
    """What one pipeline was built from: changes in `mark` call for another one."""

    mark: tuple[object, ...]
    settings: Settings
    pipeline: Pipeline | None
    fault: ToolcribError | None


class InForce:
    """Holds one pipeline and replaces it when anything that it rests on has changed. Safe to share between threads."""

    def __init__(self, settings: Settings, *, assembly: Assembly, store: Store) -> None:
        self._path: Path = settings.path
        self._assembly = assembly
        self._store = store
        self._lock = threading.RLock()
        self._building = threading.Lock()
        self._world = _World(mark=(), settings=settings, pipeline=None, fault=None)
        self._prepared: _World | None = None
        self._read: tuple[object, Settings] = ((), settings)

    @property
    def settings(self) -> Settings:
        """The settings of the pipeline in force, or the last that could be read."""
        return self._world.settings

    @property
    def snapshot(self) -> CatalogSnapshot | None:
        """The catalog that requests were last answered on, or None. Builds nothing."""
        pipeline = self._world.pipeline
        return pipeline.snapshot if pipeline is not None else None

    def settings_on_disk(self) -> Settings:
        """The settings as they are on disk now, or the last that could be used. Builds nothing."""
        mark, (known, settings) = file_mark(self._path), self._read
        if mark != known:
            with suppress(ToolcribError):
                settings = load_settings(self._path)
            self._read = (mark, settings)
        return settings

    def pipeline(self) -> Pipeline:
        """The pipeline in force, rebuilt when anything it rests on has changed.

        Raises:
            ToolcribError: no valid catalog or policy; nothing is permitted.
        """
        with self._lock:
            mark = self._mark()
            for _ in range(_MAX_REBUILDS):
                if mark == self._world.mark and self._world.fault is None:
                    break
                self._world = self._taken(mark) or self._build(mark)
                mark, before = self._mark(), mark
                if mark == before:  # else a file was being written while it was read
                    break
            if self._world.fault is not None:
                raise self._world.fault
            assert self._world.pipeline is not None
            return self._world.pipeline

    def reloaded(self) -> Settings:
        """The settings as they are on disk now; if they are others, the next request builds anew.

        Raises:
            ConfigError: they cannot be used.
        """
        settings = load_settings(self._path)
        with self._lock:
            if settings != self._world.settings or self._world.fault is not None:
                self._world = _World(mark=(), settings=settings, pipeline=None, fault=None)
        return settings

    def forget(self) -> None:
        """The next request builds anew, whatever the mark says."""
        with self._lock:
            self._world = _World(mark=(), settings=self._world.settings, pipeline=None, fault=None)

    def prepare(self, publication: Publication) -> None:
        """Build the pipeline that will be in force once this is the current publication, while others are answered.

        For a thread that no request waits for. Does nothing where nobody was answered yet; what cannot be built is not
        prepared, and the first request finds out why.
        """
        world = self._world
        if world.pipeline is None:
            return
        mark = self._mark()
        expected = (self._store.mark_after(publication.publication_id), *mark[1:])
        if expected == world.mark:
            return
        made = self._build(expected, publication=publication)
        if made.pipeline is not None:
            _look_around(made.pipeline, world.pipeline)
        self._prepared = made if made.pipeline is not None and self._mark() == mark else None

    def _taken(self, mark: tuple[object, ...]) -> _World | None:
        """What was prepared for this mark. It is used once, or never."""
        prepared, self._prepared = self._prepared, None
        return prepared if prepared is not None and prepared.mark == mark else None

    def _mark(self) -> tuple[object, ...]:
        settings = self._world.settings
        files = [settings.path, settings.lock, *([settings.policy] if settings.policy else [])]
        files += [settings.resolve(settings.retrieval.learned)] if settings.retrieval.learned else []
        files += [settings.resolve(settings.retrieval.calibration)] if settings.retrieval.calibration else []
        return (self._store.current_mark(), self._assembly.tries(), *(file_mark(file) for file in files))

    def _build(self, mark: tuple[object, ...], *, publication: Publication | None = None) -> _World:
        settings = self._world.settings
        try:
            settings = load_settings(self._path)
            with self._building:
                pipeline = self._assembly.pipeline(settings, publication=publication)
        except ToolcribError as fault:
            return _World(mark=mark, settings=settings, pipeline=None, fault=fault)
        return _World(mark=mark, settings=settings, pipeline=pipeline, fault=None)


def _look_around(pipeline: Pipeline, before: Pipeline) -> None:
    """Make the views of those who asked last, so that their next request does not wait for them."""
    for caller, channel in before.asked_lately()[:_MAX_VIEWS]:
        with suppress(ToolcribError):
            pipeline.view(caller, channel)
