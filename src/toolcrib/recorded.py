"""What old traces rested on: kept under its version when it came into force, and made again for a replay (I6).

Floor 4. Above: `assembly.py` keeps, `looking_back.py` asks. Below: the store.

    catalog   ids, digests, states and metadata of the tools in service; definitions by digest
    policy    the text                        options   the values that everybody's digest of options begins with
    index     made again from the catalog; another model or another way of counting makes another one

Invariants
1. What is made again is what was there, or nothing: a definition is checked against its digest, a policy, options and
   an index against their version.
2. Nothing of it is in force: it answers old questions for the operator.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from toolcrib.catalog.digest import definition_digest
from toolcrib.errors import InvalidDefinitionError, PolicyError
from toolcrib.pipeline import PipelineOptions
from toolcrib.policy.engine import PolicyEngine
from toolcrib.retrieval.calibration import Calibration
from toolcrib.store.protocol import Store
from toolcrib.types import (
    CatalogSnapshot,
    Channel,
    ResidencyRule,
    Risk,
    RiskCeiling,
    RiskSource,
    RoutingRules,
    Tool,
    ToolMetadata,
    ToolState,
)

_METADATA = tuple(field.name for field in fields(ToolMetadata))


# --- catalog


def metadata_rows(tools: Sequence[Tool]) -> dict[str, Any]:
    """Operator metadata of these tools for a catalog's summary: each value once, and which tool has which."""
    numbers: dict[ToolMetadata, int] = {}
    of_tools = [numbers.setdefault(tool.metadata, len(numbers)) for tool in tools]
    return {
        "metadata": [{name: getattr(one, name) for name in _METADATA} for one in numbers],
        "metadata_of": of_tools,
    }


def snapshot_again(store: Store, version: str) -> CatalogSnapshot | None:
    """The tools in service of an old catalog version; None where not all of them are remembered."""
    summary = store.catalog(version) or {}
    if "metadata" not in summary:
        return None
    known = [_metadata(one) for one in summary["metadata"]]
    tools: list[Tool] = []
    for (tool_id, digest, state), number in zip(summary["tools"], summary["metadata_of"], strict=True):
        definition = store.definition(digest)
        if not isinstance(definition, dict) or not _is_own(definition, digest):
            return None
        server_id, _, name = tool_id.partition(".")
        tools.append(
            Tool(
                tool_id=tool_id,
                server_id=server_id,
                name=name,
                definition=definition,
                digest=digest,
                state=ToolState(state),
                metadata=known[number],
            )
        )
    return CatalogSnapshot(version=version, tools=tuple(tools))


def _metadata(kept: Mapping[str, Any]) -> ToolMetadata:
    plain: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in kept.items()}
    plain |= {"risk": Risk(kept["risk"]), "risk_source": RiskSource(kept["risk_source"])}
    return ToolMetadata(**plain)


def _is_own(definition: Any, digest: str) -> bool:
    try:
        return definition_digest(definition) == digest
    except InvalidDefinitionError:
        return False


# --- policy


def policy_again(store: Store, version: str) -> PolicyEngine | None:
    """The policy of this version, or None where its text is not kept, or reads otherwise in this release."""
    text = store.kept_version("policy", version)
    if text is None:
        return None
    try:
        engine = PolicyEngine.from_text(text, source=f"policy {version[:19]}")
    except PolicyError:
        return None
    return engine if engine.version == version else None


# --- options


def options_text(options: PipelineOptions) -> str:
    """The values of options that can be written down and read back."""
    return json.dumps(
        {
            "confidence_floor": options.confidence_floor,
            "top_k": options.top_k,
            "unknown_risk": {channel.value: risk for channel, risk in options.unknown_risk.items()},
            "rules": asdict(options.rules),
            "fallback": options.fallback,
            "adapt": options.adapt,
            "rerank": options.rerank,
            "calibration": None if options.calibration is None else asdict(options.calibration),
        },
        sort_keys=True,
    )


def options_again(store: Store, digest: str, *, like: PipelineOptions) -> PipelineOptions | None:
    """The options of this digest, or None where something in them is gone.

    Args:
        like: those in force, for whatever is not written down.
    """
    if like.digest == digest:
        return like
    text = store.kept_version("options", digest)
    if text is None:
        return None
    kept = json.loads(text)
    made = replace(
        like,
        confidence_floor=kept["confidence_floor"],
        top_k=kept["top_k"],
        unknown_risk={Channel(channel): risk for channel, risk in kept["unknown_risk"].items()},
        rules=_rules(kept["rules"]),
        fallback=tuple(kept["fallback"]),
        adapt=kept["adapt"],
        rerank=kept["rerank"],
        calibration=Calibration.of_values(kept["calibration"]) if kept.get("calibration") else None,
    )
    return made if made.digest == digest else None


def _rules(kept: Mapping[str, Any]) -> RoutingRules:
    ceilings = tuple(
        RiskCeiling(stages=tuple(row["stages"]), max_risk=Risk(row["max_risk"])) for row in kept["risk_ceilings"]
    )
    residency = tuple(ResidencyRule(**{key: tuple(values) for key, values in row.items()}) for row in kept["residency"])
    return RoutingRules(
        risk_ceilings=ceilings,
        residency=residency,
        prefer=tuple(kept["prefer"]),
        near_score=kept["near_score"],
        near_meaning=kept["near_meaning"],
        equivalent=tuple(tuple(group) for group in kept["equivalent"]),
    )
