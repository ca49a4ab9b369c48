"""What policy says: decisions, and what one caller may know of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from toolcrib.types.shapes import BoolArray, IntArray


class Effect(StrEnum):
    PERMIT = "permit"
    FORBID = "forbid"
    NEEDS_APPROVAL = "needs_approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One policy decision and why: the ids of the policies that determined it, evaluation errors if there were any.

    Any error makes the effect `forbid` (an error inside a `forbid` rule would otherwise permit).
    """

    effect: Effect
    policies: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Eligibility:
    """What one caller may know of, over the tools of one snapshot. All arrays are read-only, of shape (n_tools,).

    Why a tool is permitted or not is not kept here: the engine says it of one tool, when it is asked.

    Args:
        permitted: bool: may be found, listed, described and (before argument checks) called.
        needs_approval: bool: permitted, and a call waits for an approval.
        disclosed: bool: policy lets the caller know that such a tool exists, but not use it.
        class_of: int64: the decision class of each tool.
        errors: what went wrong in evaluation, sorted, each once; tools that it went wrong for are denied.
        method: how it was computed, both giving the same: `residual` (partial evaluation over columns) or `class`.
    """

    snapshot_version: str
    policy_version: str
    fingerprint: str
    permitted: BoolArray
    needs_approval: BoolArray
    disclosed: BoolArray
    class_of: IntArray
    errors: tuple[str, ...] = ()
    method: Literal["residual", "class"] = "class"
