"""Findings as SARIF 2.1.0, which code scanning services read.

A definition has no lines, so a result names the tool and the JSON pointer as its logical location; where a file was
read, the file is its physical one.

Source:
    Static Analysis Results Interchange Format 2.1.0, OASIS standard.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from toolcrib.review.findings import Finding, Level
from toolcrib.review.rules import RULES
from toolcrib.review.text import show

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Level.INFO: "note", Level.REVIEW: "warning", Level.BLOCK: "error"}


def sarif(found: Mapping[str, Sequence[Finding]], *, version: str, files: Mapping[str, str]) -> dict[str, Any]:
    """One run with every finding.

    Args:
        found: tool id -> its findings.
        version: of Toolcrib.
        files: tool id, or server id for its instructions -> the file that it was read from, where it was.
    """
    used = sorted({finding.rule for findings in found.values() for finding in findings})
    places = {rule: number for number, rule in enumerate(used)}
    driver = {
        "name": "toolcrib lint",
        "version": version,
        "rules": [_rule(rule) for rule in used],
    }
    results = [
        _result(tool_id, finding, places[finding.rule], files.get(tool_id, ""))
        for tool_id, findings in found.items()
        for finding in findings
    ]
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule_id: str) -> dict[str, Any]:
    rule = RULES[rule_id]
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"Example: {rule.example}\n{rule.resolve}"},
        "defaultConfiguration": {"level": _LEVELS[rule.level]},
        "properties": {"tags": ["security", rule.family]},
    }


def _result(tool_id: str, finding: Finding, rule_idx: int, file: str) -> dict[str, Any]:
    logical = {"name": tool_id, "fullyQualifiedName": tool_id + finding.pointer, "kind": "member"}
    location: dict[str, Any] = {"logicalLocations": [logical]}
    if file:
        location["physicalLocation"] = {"artifactLocation": {"uri": _uri(file)}}
    told = "\0".join((tool_id, finding.rule, finding.pointer, finding.evidence))
    mark = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule_idx,
        "level": _LEVELS[finding.level],
        "message": {"text": show(f"{tool_id}{finding.pointer}: {finding.why}: {finding.evidence}")},
        "locations": [location],
        "partialFingerprints": {"toolcribLint/v1": mark[:32]},
    }


def _uri(file: str) -> str:
    """The file as SARIF names it: with slashes on every system."""
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix().encode("utf-8", "surrogateescape"))
