"""Findings that somebody looked at and let stand: which rule, on which tools, why, and until when.

    [[suppress]]
    rule = "sensitive-access"
    tool = "vault.*"
    reason = "a password manager: reading secrets is its work"
    expires = 2027-06-30

Above: `toolcrib lint`.

Invariants
1. A suppression without a reason is a fault of configuration.
2. After its last day it hides nothing, and says so; one that hides nothing is told of, too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from toolcrib.errors import ConfigError
from toolcrib.review.findings import Finding
from toolcrib.review.rules import RULES

DEFAULT_FILE = "lint-suppress.toml"
_KEYS = {"rule", "tool", "reason", "expires"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """One decision. `tool`: a glob on tool ids. `expires`: its last day; None for no end."""

    rule: str
    tool: str
    reason: str
    expires: date | None = None

    def covers(self, tool_id: str, finding: Finding) -> bool:
        return finding.rule == self.rule and fnmatchcase(tool_id, self.tool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """What is left, how much was hidden, and which decisions should be looked at again."""

    kept: Mapping[str, tuple[Finding, ...]]
    n_hidden: int
    expired: tuple[Suppression, ...] = field(default=())
    unused: tuple[Suppression, ...] = field(default=())


def read_suppressions(path: Path) -> tuple[Suppression, ...]:
    """The decisions in a file.

    Raises:
        ConfigError: the file cannot be read, or an entry says too little or too much.
    """
    try:
        body = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise ConfigError(f"cannot be read: {fault.strerror or fault}", where=str(path)) from fault
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise ConfigError(f"is not TOML: {fault}", where=str(path)) from fault
    rows = body.get("suppress", [])
    if set(body) - {"suppress"} or not isinstance(rows, list):
        raise ConfigError("holds [[suppress]] blocks and nothing else", where=str(path))
    return tuple(_one(row, f"{path}: [[suppress]] number {number}") for number, row in enumerate(rows, start=1))


def _one(row: Any, where: str) -> Suppression:
    if (
        not isinstance(row, dict)
        or set(row) - _KEYS
        or not all(isinstance(row.get(k), str) for k in ("rule", "tool", "reason"))
    ):
        raise ConfigError("takes rule, tool and reason, and may take expires", where=where)
    if row["rule"] not in RULES:
        raise ConfigError(f"no rule {row['rule']!r}", where=where, hint="see `toolcrib lint rules`")
    if not row["reason"].strip():
        raise ConfigError("has no reason", where=where, hint="say why the finding may stand")
    expires = row.get("expires")
    if isinstance(expires, datetime):
        expires = expires.date()
    if expires is not None and not isinstance(expires, date):
        raise ConfigError("expires is a date", where=where, hint="write it without quotes: expires = 2027-06-30")
    return Suppression(rule=row["rule"], tool=row["tool"], reason=row["reason"], expires=expires)


def suppressed(
    found: Mapping[str, tuple[Finding, ...]], decisions: Sequence[Suppression], *, today: date
) -> Suppressed:
    """The findings by tool id without those that a decision in force covers."""
    force = [one for one in decisions if one.expires is None or one.expires >= today]
    used: set[Suppression] = set()
    kept: dict[str, tuple[Finding, ...]] = {}
    n_hidden = 0
    for tool_id, findings in found.items():
        left = []
        for finding in findings:
            covering = [one for one in force if one.covers(tool_id, finding)]
            used.update(covering)
            n_hidden += bool(covering)
            if not covering:
                left.append(finding)
        kept[tool_id] = tuple(left)
    return Suppressed(
        kept=kept,
        n_hidden=n_hidden,
        expired=tuple(one for one in decisions if one not in force),
        unused=tuple(one for one in force if one not in used),
    )
