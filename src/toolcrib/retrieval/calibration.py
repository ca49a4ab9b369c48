"""A crib's own map of confidence: two numbers and a floor, fitted by `toolcrib calibrate`, kept in a small JSON file.

    confidence ─▶ logit ─▶ slope * logit + offset ─▶ calibrated confidence

Above: `pipeline.py` applies it to a ranking. Beside it: `confidence.py`, whose numbers it maps.

Invariants
1. The map rises (slope above 0): no order changes, and it is the same for all callers (I1).
2. What is certain stays certain: a tool that the task names keeps confidence 1, and 0 stays 0.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from toolcrib.errors import RetrievalError
from toolcrib.types import Ranking

FORMAT = "toolcrib-calibration/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What was fitted, and on what.

    Args:
        basis: `confidence.basis_of` the model it was fitted with; of another one it says nothing.
        slope, offset: of the map, slope above 0.
        floor: 0 to 1, calibrated confidence below which nothing is offered.
        false_refusal: the share of answerable requests that the floor may refuse, as asked for.
        n_answerable, n_unanswerable: requests that it rests on.
    """

    basis: str
    slope: float
    offset: float
    floor: float
    false_refusal: float
    n_answerable: int
    n_unanswerable: int
    made: str = ""

    def of(self, confidence: float) -> float:
        """The calibrated confidence, 0 to 1."""
        if not 0.0 < confidence < 1.0:
            return confidence
        logit = self.slope * math.log(confidence / (1.0 - confidence)) + self.offset
        return 1.0 / (1.0 + math.exp(-min(max(logit, -30.0), 30.0)))

    def before(self, calibrated: float) -> float:
        """The confidence that is told as this one, 0 to 1: `of` the other way round."""
        if not 0.0 < calibrated < 1.0:
            return calibrated
        logit = (math.log(calibrated / (1.0 - calibrated)) - self.offset) / self.slope
        return 1.0 / (1.0 + math.exp(-min(max(logit, -30.0), 30.0)))

    def applied(self, ranking: Ranking) -> Ranking:
        """The ranking with every confidence mapped."""
        hits = tuple(replace(hit, confidence=self.of(hit.confidence)) for hit in ranking.hits)
        return replace(ranking, hits=hits, confidence=self.of(ranking.confidence))

    def write(self, path: Path) -> None:
        """Raises RetrievalError when the file cannot be written."""
        text = json.dumps({"format": FORMAT} | asdict(self), indent=2, sort_keys=True) + "\n"
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as fault:
            raise RetrievalError(
                f"the calibration cannot be written: {fault.strerror}", where=str(path), hint="choose another --out"
            ) from fault

    @classmethod
    def read(cls, path: Path) -> Calibration:
        """Raises RetrievalError for a file that is missing, damaged or of another format."""
        try:
            return cls.of_values(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, KeyError) as fault:
            raise RetrievalError(
                f"the calibration cannot be read: {fault}", where=str(path), hint="run `toolcrib calibrate` again"
            ) from fault

    @classmethod
    def of_values(cls, values: object) -> Calibration:
        """From what `write` wrote, or `asdict` gave. Raises ValueError, TypeError."""
        if not isinstance(values, dict) or values.get("format", FORMAT) != FORMAT:
            raise ValueError(f"it is no object of format {FORMAT}")
        known = {field.name for field in fields(cls)}
        if unknown := set(values) - known - {"format"}:
            raise ValueError(f"unknown: {', '.join(sorted(map(str, unknown)))}")
        found = cls(**{key: value for key, value in values.items() if key in known})
        numbers = (found.slope, found.offset, found.floor, found.false_refusal)
        if not all(isinstance(n, int | float) and not isinstance(n, bool) and math.isfinite(n) for n in numbers):
            raise ValueError("slope, offset, floor and false_refusal are numbers")
        if not (found.slope > 0 and 0 <= found.floor <= 1 and isinstance(found.basis, str)):
            raise ValueError("slope must be above 0, floor 0 to 1, basis a text")
        if not all(type(n) is int and n >= 0 for n in (found.n_answerable, found.n_unanswerable)):
            raise ValueError("n_answerable and n_unanswerable are whole numbers, 0 or more")
        if not isinstance(found.made, str):
            raise ValueError("made is a text")
        return found
