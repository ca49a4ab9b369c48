"""Callers, tools and requests in the shape that Cedar reads.

Below: `types/`. Above: `classes.py`, `engine.py`. `schema.cedarschema` says what each attribute means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from toolcrib.types import Caller, CallerKind, Channel, Resource, Tool

Attribute: TypeAlias = str | bool | tuple[str, ...]

_CALLER_TYPE = {CallerKind.USER: "User", CallerKind.AGENT: "Agent", CallerKind.WORKLOAD: "Workload"}


def tool_attributes(tool: Tool) -> dict[str, Attribute]:
    """All that a policy can see of a tool besides its id; sets as sorted tuples, so that equal sets are equal here.

    `name` comes last: `classes.py` leaves it out of the key unless a policy reads it.
    """
    said = tool.metadata
    return {
        "server_id": tool.server_id,
        "namespace": said.namespace,
        "owner": said.owner,
        "required_scopes": _set(said.required_scopes),
        "stages": _set(said.stages),
        "environments": _set(said.environments),
        "tenants": _set(said.tenants),
        "regions": _set(said.regions),
        "risk": said.risk.value,
        "risk_source": said.risk_source.value,
        "data_class": said.data_class,
        "enabled": said.enabled,
        "state": tool.state.value,
        "name": tool.name,
    }


def tool_entity(tool: Tool) -> dict[str, Any]:
    parents = [{"type": "Server", "id": tool.server_id}]
    if tool.metadata.namespace:
        parents.append({"type": "Namespace", "id": tool.metadata.namespace})
    return {"uid": tool_uid(tool), "attrs": tool_attributes(tool), "parents": parents}


def tool_uid(tool: Tool) -> dict[str, str]:
    return {"type": "Tool", "id": tool.tool_id}


def caller_entity(caller: Caller) -> dict[str, Any]:
    return {
        "uid": caller_uid(caller),
        "attrs": {
            "kind": caller.kind.value,
            "on_behalf_of": caller.on_behalf_of,
            "tenant": caller.tenant,
            "roles": sorted(caller.roles),
            "scopes": sorted(caller.scopes),
            "features": sorted(caller.features),
            "clearance": caller.clearance,
        },
        "parents": [{"type": "Role", "id": role} for role in sorted(caller.roles)],
    }


def caller_uid(caller: Caller) -> dict[str, str]:
    return {"type": _CALLER_TYPE[caller.kind], "id": caller.subject}


def resource_entity(target: Resource) -> dict[str, Any]:
    """The resource that a call names, as its owner described it."""
    return {
        "uid": {"type": "Resource", "id": target.resource_id},
        "attrs": {"type": target.resource_type, "tenant": target.tenant, "owner": target.owner},
        "parents": [],
    }


def context_json(
    caller: Caller,
    *,
    channel: Channel,
    unknown_risk: str,
    approved: bool,
    target: Resource | None = None,
    extra: Mapping[str, Any] | None = None,
) -> str:
    """The request's context. JSON text, since one context serves a whole batch and would be dumped anew each time."""
    context: dict[str, Any] = {
        "channel": channel.value,
        "stage": caller.stage,
        "environment": caller.environment,
        "region": caller.region,
        "unknown_risk": unknown_risk,
        "approved": approved,
    }
    if target is not None:
        context["target"] = {"__entity": {"type": "Resource", "id": target.resource_id}}
    return json.dumps({**context, **(extra or {})})


def _set(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))
