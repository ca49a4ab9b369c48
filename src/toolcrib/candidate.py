"""The candidate of `[shadow]`: another settings file, tried over the catalog, store and lock of this crib.

Floor 4. Above: `shadow.py`. Below: `settings/`, `assembly.py`.

    toolcrib.toml ───────────────── everything else ──┐
    candidate.toml ─ the tables it writes, of TAKEN ──┴─▶ Settings ─▶ Assembly ─▶ Pipeline

Invariants
1. Only what the candidate's file writes, and only of `TAKEN`, is another than in the crib's own; the rest of the file
   is named and has no effect: it opens no server, lets nobody in, reads no other store.
2. A pipeline is made again when something that it rests on has changed, or a model that did not answer is worth
   another try; a fault stays one until then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from toolcrib.assembly import Assembly
from toolcrib.catalog.digest import digest_of
from toolcrib.errors import ConfigError, ToolcribError
from toolcrib.marks import file_mark
from toolcrib.pipeline import Pipeline
from toolcrib.settings import RetrievalSettings, SelectionSettings, Settings, load_settings
from toolcrib.settings.references import parse_reference
from toolcrib.store.protocol import Store
from toolcrib.types import SecretRef

TAKEN = ("crib.policy", "policy", "retrieval", "routing", "selection", "fallback", "tools")
"""Keys of a candidate's file that are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The settings that are tried. `taken`, `ignored`: keys of the candidate's file, as they stand there."""

    settings: Settings
    taken: tuple[str, ...]
    ignored: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A candidate that can answer. `candidate_id`: digest of all that it was told, the catalog left out."""

    pipeline: Pipeline
    selection: SelectionSettings
    candidate_id: str


def tried_settings(present: Settings) -> Tried:
    """The crib's own settings with what the candidate's file writes in their place.

    Raises:
        ConfigError: the file is missing, cannot be used, or is the crib's own.
    """
    if not present.shadow.candidate:
        return Tried(settings=present, taken=(), ignored=())
    file = present.resolve(present.shadow.candidate)
    found = load_settings(file)
    if found.path.resolve() == present.path.resolve():
        hint = "name another file, for example candidate.toml"
        raise ConfigError(
            "the candidate is this crib's own file", where=present.where("shadow", "candidate"), hint=hint
        )
    written = _written(found)
    taken = tuple(key for key in TAKEN if key in written)
    made = present
    if "crib.policy" in taken:
        policy = str(found.policy) if found.policy else ""
        made = replace(made, crib=replace(made.crib, policy=policy))
    if "policy" in taken:
        made = replace(made, policy_options=found.policy_options)
    if "retrieval" in taken:
        made = replace(made, retrieval=_found_from(found))
    if "routing" in taken:
        made = replace(made, routing=found.routing)
    if "selection" in taken:
        made = replace(made, selection=found.selection)
    if "fallback" in taken:
        made = replace(made, fallback=found.fallback)
    if "tools" in taken:
        made = replace(made, tools=found.tools)
    return Tried(settings=made, taken=taken, ignored=tuple(key for key in written if key not in TAKEN))


def _written(settings: Settings) -> list[str]:
    """The tables of a file in their order; those of [crib] key by key, since only one of them is tried."""
    keys: dict[str, None] = {}
    for path in sorted(settings.lines.by_path, key=lambda path: settings.lines.by_path[path]):
        if path[0] != "crib":
            keys[str(path[0])] = None
        elif len(path) > 1:
            keys[f"crib.{path[1]}"] = None
    return list(keys)


def _found_from(candidate: Settings) -> RetrievalSettings:
    """`[retrieval]` of a candidate; files that it names lie beside it."""
    chosen = candidate.retrieval

    def whole(path: str) -> str:
        return str(candidate.resolve(path)) if path else ""

    model = chosen.model
    if model is not None:
        model = replace(model, path=whole(model.path), api_key=_beside(candidate, model.api_key))
    return replace(chosen, calibration=whole(chosen.calibration), learned=whole(chosen.learned), model=model)


def _beside(candidate: Settings, key: SecretRef | None) -> SecretRef | None:
    """The same reference; a file that it names lies beside the candidate's file."""
    found = None if key is None else parse_reference(key.reference)
    if key is None or found is None or found.fault or found.kind != "file":
        return key
    return replace(key, reference=f"file:{candidate.resolve(found.target)}")


def candidate_id(settings: Settings, pipeline: Pipeline) -> str:
    """What tells two candidates apart, over any catalog."""
    return digest_of(
        pipeline.policy.version,
        pipeline.options.digest,
        pipeline.learned.digest,
        pipeline.index.model_id if pipeline.index else "none",
        asdict(settings.selection),
        [(rule.pattern, sorted(rule.fields.items())) for rule in settings.tools],
    )


class Candidate:
    """Keeps the candidate's pipeline. For one thread."""

    def __init__(self, store: Store, *, on_progress: Callable[[str], None]) -> None:
        self._store = store
        self._on_progress = on_progress
        self._assembly = Assembly(store, on_progress=lambda text: on_progress(f"shadow: {text}"))
        self._mark: tuple[object, ...] | None = None
        self._made: Ready | ToolcribError | None = None
        self._told: tuple[str, ...] = ()
        self._tried: tuple[Settings, tuple[object, ...], Tried] | None = None

    def ready(self, present: Settings) -> Ready:
        """The candidate over what is in the catalog now.

        Raises:
            ToolcribError: its settings or its policy cannot be used, or there is no catalog.
        """
        tried = self._tried_now(present)
        self._tell_ignored(tried)
        mark = self._now(tried.settings)
        if mark != self._mark or self._made is None:
            self._made, self._mark = self._build(tried.settings), mark
        if isinstance(self._made, ToolcribError):
            raise self._made
        return self._made

    def _tried_now(self, present: Settings) -> Tried:
        """The settings that are tried; read again only when either file is another."""
        mark = file_mark(present.resolve(present.shadow.candidate))
        known = self._tried
        if known is None or not mark or known[:2] != (present, mark):
            known = self._tried = (present, mark, tried_settings(present))
        return known[2]

    def _build(self, settings: Settings) -> Ready | ToolcribError:
        try:
            pipeline = self._assembly.pipeline(settings)
        except ToolcribError as fault:
            return fault
        return Ready(pipeline=pipeline, selection=settings.selection, candidate_id=candidate_id(settings, pipeline))

    def _now(self, settings: Settings) -> tuple[object, ...]:
        """Changes when another pipeline would be made."""
        files = [settings.lock, *([settings.policy] if settings.policy else [])]
        files += [
            settings.resolve(path) for path in (settings.retrieval.calibration, settings.retrieval.learned) if path
        ]
        return (settings, self._store.current_mark(), self._assembly.tries(), *(file_mark(file) for file in files))

    def _tell_ignored(self, tried: Tried) -> None:
        if tried.ignored and tried.ignored != self._told:
            self._on_progress(f"shadow: the candidate's {', '.join(tried.ignored)} have no effect and are not tried")
        self._told = tried.ignored
