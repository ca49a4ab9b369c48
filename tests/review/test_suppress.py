"""Findings that somebody let stand."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from toolcrib.errors import ConfigError
from toolcrib.review.findings import Finding
from toolcrib.review.suppress import Suppression, read_suppressions, suppressed

TODAY = date(2026, 12, 1)


def finding(rule: str) -> Finding:
    return Finding(rule=rule, pointer="/description", evidence="", why="")


def decision(rule: str, tool: str, expires: date | None = None) -> Suppression:
    return Suppression(rule=rule, tool=tool, reason="looked at", expires=expires)


def test_a_decision_hides_its_rule_on_its_tools_only() -> None:
    found = {
        "vault.read": (finding("sensitive-access"), finding("secrecy")),
        "mail.send": (finding("sensitive-access"),),
    }
    left = suppressed(found, [decision("sensitive-access", "vault.*")], today=TODAY)
    assert {tool: [f.rule for f in kept] for tool, kept in left.kept.items()} == {
        "vault.read": ["secrecy"],
        "mail.send": ["sensitive-access"],
    }
    assert (left.n_hidden, left.unused, left.expired) == (1, (), ())


@pytest.mark.parametrize(("last", "hides"), [(TODAY, True), (date(2026, 11, 30), False)], ids=["last-day", "day-after"])
def test_a_decision_holds_through_its_last_day_and_not_longer(last: date, hides: bool) -> None:
    one = decision("secrecy", "a.b", last)
    left = suppressed({"a.b": (finding("secrecy"),)}, [one], today=TODAY)
    assert (left.n_hidden == 1) is hides
    assert left.expired == (() if hides else (one,))


def test_a_decision_that_hides_nothing_is_told_of() -> None:
    one = decision("secrecy", "gone.*")
    assert suppressed({"a.b": (finding("secrecy"),)}, [one], today=TODAY).unused == (one,)


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        '[[suppress]]\nrule = "secrecy"\ntool = "a.*"\nreason = "x"\nexpires = 2027-06-30\n', encoding="utf-8"
    )
    assert read_suppressions(file) == (Suppression(rule="secrecy", tool="a.*", reason="x", expires=date(2027, 6, 30)),)


@pytest.mark.parametrize(
    "text",
    [
        "[[suppress",
        "other = 1\n",
        '[[suppress]]\nrule = "secrecy"\ntool = "*"\n',
        '[[suppress]]\nrule = "secrecy"\ntool = "*"\nreason = " "\n',
        '[[suppress]]\nrule = "secresy"\ntool = "*"\nreason = "x"\n',
        '[[suppress]]\nrule = "secrecy"\ntool = "*"\nreason = "x"\nexpires = "2027-06-30"\n',
        '[[suppress]]\nrule = "secrecy"\ntool = "*"\nreason = "x"\nuntil = 2027-06-30\n',
    ],
    ids=["no-toml", "other-key", "no-reason", "blank-reason", "unknown-rule", "date-in-quotes", "unknown-key"],
)
def test_a_file_that_says_too_little_or_too_much_is_a_fault(tmp_path: Path, text: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError):
        read_suppressions(file)


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        read_suppressions(tmp_path / "none.toml")
