"""`toolcrib calibrate`: from cases whose answer is known to a map of confidence and a floor for one crib.

    cases ─▶ the crib's own search, without a calibration ─▶ (confidence, does a tool in reach fit?)
          ─▶ Platt map and floor ─▶ the file that `[retrieval] calibration` puts in force
          └▶ the same five times on four fifths, told on the fifth left out ─▶ report
Floor 4. Above: `cli/calibrate.py`. Below: `evals/`, `crib.py`, `retrieval/calibration.py`.

Invariants
1. What is reported was not fitted on; equal texts stay in one fold.
2. A calibration is the operator's setting, the same for all callers, fitted on what callers could reach (I1).
3. A log shows which offers were used, never what was wrongly refused: cases from it cannot lower a floor, and the
   report says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from toolcrib.crib import Crib
from toolcrib.errors import ConfigError
from toolcrib.evals.cases import Case
from toolcrib.evals.metrics import auroc
from toolcrib.evals.places import place_of_crib
from toolcrib.evals.run import run
from toolcrib.pipeline import Pipeline
from toolcrib.retrieval.calibration import Calibration
from toolcrib.retrieval.confidence import basis_of

MIN_CASES = 30
MIN_OF_EACH = 8
N_FOLDS = 5
BANDS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_RIDGE = 2.0
"""Pulls the map towards the identity as much as two requests would."""
_MIN_SLOPE = 0.05
_STEPS = 50
_FloatArray = npt.NDArray[np.float64]
_BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A request whose answer is known. `confidence`: of the search, not calibrated, 0 to 1. `fits`: a tool does it."""

    text: str
    confidence: float
    fits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Requests of which a confidence from `low` to `high` was told. `mean`: of what was told. `share`: that fit."""

    low: float
    high: float
    n: int
    mean: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AtFloor:
    """What a floor does. `false_refusal`: share of answerable requests refused; `false_accept`: of others let through.

    `floor` is None where each fold had its own.
    """

    floor: float | None
    false_refusal: float
    false_accept: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """What the calibration is worth on requests it was not fitted on.

    Args:
        n_left_out: cases that say nothing here: a tool fits, and their caller cannot reach it.
        auroc: 0 to 1; no map changes it.
        bands: calibrated confidence against what was so, folds left out.
        before: the floor in force now, on the scale without a calibration. held_out: the fitted floor, folds left out.
        from_log: whether the cases come from traces.
    """

    n_answerable: int
    n_unanswerable: int
    n_left_out: int
    auroc: float
    bands: tuple[Band, ...]
    before: AtFloor
    held_out: AtFloor
    from_log: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A calibration and its report."""

    calibration: Calibration
    report: CalibrationReport


def known_of(
    crib: Crib, cases: Sequence[Case], *, name: str, on_progress: Callable[[int, int], None] = lambda _done, _all: None
) -> tuple[tuple[Known, ...], int]:
    """(what the crib's search says of each case, how many cases say nothing).

    Raises:
        ConfigError: a case names a caller that is not there. ToolcribError: nothing valid is in force.
    """
    place = place_of_crib(crib, cases, name=name)
    results = run(replace(place, pipeline=uncalibrated(place.pipeline)), on_progress=on_progress)
    known = tuple(
        Known(text=result.case.task, confidence=result.confidence, fits=result.fits)
        for result in results
        if result.fits is not None
    )
    return known, len(results) - len(known)


def uncalibrated(pipeline: Pipeline) -> Pipeline:
    """The same pipeline without a calibration: what one is fitted on."""
    return replace(pipeline, options=replace(pipeline.options, calibration=None))


def floor_in_force(pipeline: Pipeline) -> float:
    """The floor that counts now, 0 to 1, on the scale of confidences without a calibration."""
    options = pipeline.options
    return (
        options.confidence_floor
        if options.calibration is None
        else options.calibration.before(options.confidence_floor)
    )


def calibrate(
    known: Sequence[Known],
    *,
    model_id: str,
    floor_now: float,
    false_refusal: float = 0.02,
    n_left_out: int = 0,
    from_log: bool = False,
    made: str = "",
) -> Calibrated:
    """A map and a floor, fitted on all requests, with a report from folds left out.

    Args:
        model_id: of the index the confidences come from.
        floor_now: the floor to compare with, on the scale of `Known.confidence`.
        false_refusal: above 0, below 0.5: the share of answerable requests that may be refused.
    Raises:
        ConfigError: there are too few requests of a kind, or the share is none.
    """
    if not 0 < false_refusal < 0.5:
        raise ConfigError(f"the false refusal rate must be above 0 and below 0.5, got {false_refusal}")
    fits = np.array([one.fits for one in known], dtype=np.bool_)
    n_yes, n_no = int(fits.sum()), int((~fits).sum())
    confidence = np.array([one.confidence for one in known], dtype=np.float64)
    _check_enough(confidence, fits, from_log=from_log)
    slope, offset = _fitted(confidence, fits)
    mapped = _mapped(confidence, slope, offset)
    floor = floor_for(mapped[fits], false_refusal)
    calibration = Calibration(
        basis=basis_of(model_id),
        slope=round(slope, 6),
        offset=round(offset, 6),
        floor=floor,
        false_refusal=false_refusal,
        n_answerable=n_yes,
        n_unanswerable=n_no,
        made=made,
    )
    told, refused = _held_out(confidence, fits, _folds([one.text for one in known]), false_refusal)
    report = CalibrationReport(
        n_answerable=n_yes,
        n_unanswerable=n_no,
        n_left_out=n_left_out,
        auroc=auroc(confidence[fits], confidence[~fits]) or 0.0,
        bands=_bands(told, fits),
        before=_at(floor_now, confidence < floor_now, fits),
        held_out=_at(None, refused, fits),
        from_log=from_log,
    )
    return Calibrated(calibration=calibration, report=report)


def floor_for(answerable: _FloatArray, false_refusal: float) -> float:
    """The floor under which at most this share of answerable requests falls: rounded down, 0 to 1.

    What is certain (1, a tool that was named; 0, nothing found) is left out: no floor decides it. With fewer than one
    over the share, none may fall: the floor then stands under the lowest by a tenth. It is 0 where nothing is left.
    """
    uncertain = answerable[(answerable > 0) & (answerable < 1)]
    if not len(uncertain):
        return 0.0
    allowed = math.floor(false_refusal * len(uncertain) + 1e-9)
    lowest = float(np.sort(uncertain)[allowed])
    floor = lowest if allowed else 0.9 * lowest
    return float(np.floor(floor * 10_000) / 10_000)


def _check_enough(confidence: _FloatArray, fits: _BoolArray, *, from_log: bool) -> None:
    uncertain = (confidence > 0) & (confidence < 1)
    n_yes, n_no = int((uncertain & fits).sum()), int((uncertain & ~fits).sum())
    if len(fits) >= MIN_CASES and min(n_yes, n_no) >= MIN_OF_EACH:
        return
    missing = [
        f"{least - n} more {what}"
        for n, least, what in (
            (n_yes, MIN_OF_EACH, "that a tool fits"),
            (n_no, MIN_OF_EACH, "that none fits"),
            (len(fits), MIN_CASES, "in all, these among them"),
        )
        if n < least
    ]
    where = (
        "write them into a case file and give it beside --from-traces: toolcrib calibrate cases.jsonl --from-traces; "
        "a log holds few requests that nothing fits"
        if from_log
        else "add what your users ask for; `toolcrib eval init` drafts some of each kind"
    )
    raise ConfigError(
        f"a calibration rests on {MIN_CASES} requests or more, {MIN_OF_EACH} of each kind "
        "whose confidence is neither 0 nor 1 (named tools have 1); "
        f"there are {len(fits)}, {n_yes} of those that a tool fits and {n_no} that none fits",
        hint=f"it takes {', '.join(missing)}: {where}",
    )


# --- fitting


def _fitted(confidence: _FloatArray, fits: _BoolArray) -> tuple[float, float]:
    """Slope and offset by Newton steps on the log-likelihood, pulled towards (1, 0). Certain hits do not count."""
    inside = (confidence > 0) & (confidence < 1)
    x = np.stack([_logit(confidence[inside]), np.ones(int(inside.sum()))], axis=1)
    y, beta, prior = fits[inside].astype(np.float64), np.array([1.0, 0.0]), np.array([1.0, 0.0])
    for _ in range(_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(x @ beta, -30.0, 30.0)))
        curve = (x * (p * (1 - p))[:, None]).T @ x + _RIDGE * np.eye(2)
        step = np.linalg.solve(curve, x.T @ (y - p) - _RIDGE * (beta - prior))
        beta = beta + step / max(1.0, float(np.abs(step).max()))
    return max(float(beta[0]), _MIN_SLOPE), float(beta[1])


def _logit(confidence: _FloatArray) -> _FloatArray:
    p = np.clip(confidence, 1e-9, 1 - 1e-9)
    return np.asarray(np.log(p / (1 - p)), dtype=np.float64)


def _mapped(confidence: _FloatArray, slope: float, offset: float) -> _FloatArray:
    inside = (confidence > 0) & (confidence < 1)
    mapped = 1.0 / (1.0 + np.exp(-np.clip(slope * _logit(confidence) + offset, -30.0, 30.0)))
    return np.asarray(np.where(inside, mapped, confidence), dtype=np.float64)


def _folds(texts: Sequence[str]) -> npt.NDArray[np.int64]:
    """The fold of each request, by its text alone."""
    plain = [" ".join(text.lower().split()) for text in texts]
    return np.array([int.from_bytes(sha256(text.encode()).digest()[:4]) % N_FOLDS for text in plain])


def _held_out(
    confidence: _FloatArray, fits: _BoolArray, folds: npt.NDArray[np.int64], false_refusal: float
) -> tuple[_FloatArray, _BoolArray]:
    """(calibrated confidence, refused) of each request, by what was fitted on the other folds."""
    told, refused = confidence.copy(), np.zeros(len(confidence), dtype=np.bool_)
    for fold in range(N_FOLDS):
        here = folds == fold
        if not here.any() or not fits[~here].any():
            continue
        slope, offset = _fitted(confidence[~here], fits[~here])
        told[here] = _mapped(confidence[here], slope, offset)
        refused[here] = told[here] < floor_for(_mapped(confidence[~here], slope, offset)[fits[~here]], false_refusal)
    return told, refused


def _at(floor: float | None, refused: _BoolArray, fits: _BoolArray) -> AtFloor:
    return AtFloor(
        floor=floor, false_refusal=float(refused[fits].mean()), false_accept=1.0 - float(refused[~fits].mean())
    )


def _bands(told: _FloatArray, fits: _BoolArray) -> tuple[Band, ...]:
    found = []
    for low, high in pairwise(BANDS):
        inside = (told >= low) & ((told < high) | (high >= 1.0))
        if inside.any():
            mean, share = float(told[inside].mean()), float(fits[inside].mean())
            found.append(Band(low=low, high=high, n=int(inside.sum()), mean=mean, share=share))
    return tuple(found)
