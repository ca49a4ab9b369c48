"""Shapes that all values share: JSON, arrays, the cost of a definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

JsonObject: TypeAlias = Mapping[str, Any]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.int64]
TokenCost: TypeAlias = Callable[[JsonObject], int]
"""Tokens that one definition costs in a model's context: definition -> tokens, 0 or more."""
