"""A configuration that reaches nobody, made from the operator's own: the world in which proofs are tried.

Above: `world.py` writes it into a temporary folder. Pure.

    [crib] [policy] [[tools]] [selection] [retrieval] [routing] ...   as they are
    [[servers]]      id, namespace, trust, enabled; no command, address, environment or header
    [[resources]]    owners are asked through stand-ins only; an HTTP owner is not asked at all
    [gate]           as it is, without what depends on the clock or on how often one has asked
    [retrieval]      as it is, with copies of the learned file and the calibration; a model of one's own, which may be a
                     service, gives way to the bundled one, for which neither of them was made
    [identity]       only what documents show; [vault], [approvals], [shadow], [refresh] and [review] are left out

Invariants
1. Whatever goes wrong in a proof, no server, owner, webhook or key set of the operator can be contacted from here.
2. No secret is read, and no reference to one is kept.
3. Equal requests get equal answers whenever they are sent: limits by the minute, windows and circuits are off.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from toolcrib.settings.toml_text import toml_string

STORE, LOCK, POLICY, PROFILES = "store", "toolcrib.lock", "policy.cedar", "profiles"
_NOWHERE = "nobody.tools.json"
_SERVER_KEYS = ("id", "namespace", "trust", "enabled")
_IDENTITY_KEYS = ("local", "required_scopes", "resource", "authorization_servers")
_RESOURCE_KEYS_LEFT_OUT = ("url", "headers")
RETRIEVAL_FILES = {"learned": "toolcrib.learned", "calibration": "toolcrib.calibration.json"}
"""Keys of `[retrieval]` that name a file, and how its copy is called."""
_RETRIEVAL_KEYS_LEFT_OUT = ("model", *RETRIEVAL_FILES)
_CLOCK_KEYS = ("calls_per_minute", "limits", "circuit")
_LEFT_OUT = ("vault", "approvals", "shadow", "refresh", "review")


def harmless(document: Mapping[str, Any], *, has_policy: bool, files: Collection[str] = ()) -> dict[str, Any]:
    """The operator's `toolcrib.toml` as one that reaches nobody.

    Args:
        document: as parsed from TOML; it has passed `load_settings`.
        has_policy: a policy of the operator's own lies beside it.
        files: those of `RETRIEVAL_FILES` whose copies lie beside it.
    """
    made = {key: value for key, value in document.items() if key not in _LEFT_OUT}
    made["crib"] = {**document.get("crib", {}), "store": STORE, "lock": LOCK, "profiles": PROFILES}
    made["crib"].pop("policy", None)
    if has_policy:
        made["crib"]["policy"] = POLICY
    made["servers"] = [server_row(row) for row in document.get("servers", ())]
    made["resources"] = [
        {key: value for key, value in row.items() if key not in _RESOURCE_KEYS_LEFT_OUT}
        for row in document.get("resources", ())
    ]
    if "retrieval" in document:
        made["retrieval"] = _own_model_aside(document["retrieval"], files)
    if "identity" in document:
        made["identity"] = {k: v for k, v in document["identity"].items() if k in _IDENTITY_KEYS}
    gate = {key: value for key, value in document.get("gate", {}).items() if key not in _CLOCK_KEYS}
    made["gate"] = {**gate, "duplicate_window_s": 0.0, "circuit": {"failures": 0}}
    return made


def _own_model_aside(retrieval: Mapping[str, Any], files: Collection[str]) -> dict[str, Any]:
    kept = {key: value for key, value in retrieval.items() if key not in _RETRIEVAL_KEYS_LEFT_OUT}
    if kept.get("embedder") == "model":
        return {**kept, "embedder": "bundled"}
    return {**kept, **{key: name for key, name in RETRIEVAL_FILES.items() if key in files}}


def server_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A `[[servers]]` row of a server that is not there: what policy and metadata read of it, and nothing else."""
    kept = {key: row[key] for key in _SERVER_KEYS if key in row}
    return {**kept, "transport": "file", "path": _NOWHERE}


def toml_of(document: Mapping[str, Any]) -> str:
    """TOML text of a parsed document, a line per top-level key or row."""
    lines: list[str] = []
    for key, value in document.items():
        if _is_rows(value):
            for row in value:
                lines += [f"[[{toml_string(key)}]]", *(f"{toml_string(k)} = {_value(v)}" for k, v in row.items())]
        elif isinstance(value, Mapping):
            lines += [f"[{toml_string(key)}]", *(f"{toml_string(k)} = {_value(v)}" for k, v in value.items())]
        else:
            lines.insert(0, f"{toml_string(key)} = {_value(value)}")
    return "\n".join(lines) + "\n"


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_string(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return str(value)  # a date or a time, whose text is TOML's


def exact_match(tool_id: str) -> str:
    """The glob that matches this tool id and no other."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in tool_id)
