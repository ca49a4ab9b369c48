"""A policy text that was loaded: its rules, for those who read it, and its engine, for those who ask it.

Below: `rules.py`, `engine.py`. Above: `compare.py`, `policy_desk.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolcrib.policy.engine import PolicyEngine
from toolcrib.policy.rules import Rule, rules_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadedPolicy:
    """One policy text, to be read and to be asked. `source`: its file, or "built-in"."""

    source: str
    rules: tuple[Rule, ...]
    engine: PolicyEngine

    @classmethod
    def from_text(cls, text: str | None, *, source: str) -> LoadedPolicy:
        """The policy with this text; None is the built-in one.

        Raises:
            PolicySyntaxError: with file, line and what to do.
        """
        rules, engine = rules_of(text, source=source), PolicyEngine.from_text(text, source=source)
        return cls(source=source, rules=rules, engine=engine)
