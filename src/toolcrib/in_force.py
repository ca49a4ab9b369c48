"""What is in force now: settings, policy, lock and catalog as they are on disk and in the store at this moment.

Floor 4. Above: `crib.py`. Below: `assembly.py` builds the pipelines.

    settings ┐
    policy   ├─▶ mark ── changed? ─▶ a new Pipeline, one reference swapped
    lock     │                       └─ cannot be made: nothing is permitted, until it can (I2)
    store    ┘

Invariants
1. Looked at on every request: what was changed counts on the next one. A model that did not answer is tried again.
2. One pipeline or one fault, never both; a fault is raised to whoever asks.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from toolcrib.assembly import Assembly
from toolcrib.errors import ToolcribError
from toolcrib.marks import file_mark
from toolcrib.pipeline import Pipeline
from toolcrib.settings import Settings, load_settings
from toolcrib.store.protocol import Store

_MAX_REBUILDS = 3


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
        self._world = _World(mark=(), settings=settings, pipeline=None, fault=None)

    @property
    def settings(self) -> Settings:
        """The settings of the pipeline in force, or the last that could be read."""
        return self._world.settings

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
                self._world = self._build(mark)
                mark, before = self._mark(), mark
                if mark == before:  # else a file was being written while it was read
                    break
            if self._world.fault is not None:
                raise self._world.fault
            assert self._world.pipeline is not None
            return self._world.pipeline

    def reloaded(self) -> Settings:
        """The settings as they are on disk now; the next request builds anew.

        Raises:
            ConfigError: they cannot be used.
        """
        settings = load_settings(self._path)
        with self._lock:
            self._world = _World(mark=(), settings=settings, pipeline=None, fault=None)
        return settings

    def _mark(self) -> tuple[object, ...]:
        settings = self._world.settings
        files = [settings.path, settings.lock, *([settings.policy] if settings.policy else [])]
        files += [settings.resolve(settings.retrieval.learned)] if settings.retrieval.learned else []
        files += [settings.resolve(settings.retrieval.calibration)] if settings.retrieval.calibration else []
        return (self._store.current_mark(), self._assembly.tries(), *(file_mark(file) for file in files))

    def _build(self, mark: tuple[object, ...]) -> _World:
        settings = self._world.settings
        try:
            settings = load_settings(self._path)
            pipeline = self._assembly.pipeline(settings)
        except ToolcribError as fault:
            return _World(mark=mark, settings=settings, pipeline=None, fault=fault)
        return _World(mark=mark, settings=settings, pipeline=pipeline, fault=None)
