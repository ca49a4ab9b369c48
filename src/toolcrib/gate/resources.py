"""Which resource a call names and whose it is: a pointer out, the owner's answer in. The asking is done elsewhere.

Above: `crib.py` asks the lookup tool between the two functions; `checks.py` compares the tenant.

Invariants
1. The tenant comes from the resource's owner, never from the call's arguments (I7).
2. An answer that is not plainly a tenant is no answer: None, and the gate refuses (I2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.types import Code, JsonObject, Resource, ResourceRule, ToolResult

_ABSENT = object()


def lookup_argument(rule: ResourceRule, arguments: JsonObject) -> Any:
    """The value that names the resource, as it was sent; None when the call names no such resource."""
    found = _resolve(rule.argument, arguments)
    return None if found is _ABSENT else found


def resource_from_answer(rule: ResourceRule, named: Any, answer: ToolResult) -> Resource | None:
    """The resource as its owner's tool described it; None when it does not know it or could not say."""
    if answer.code is not Code.OK or isinstance(named, Mapping | list | bool):
        return None
    tenant = _resolve(rule.tenant, answer.structured)
    if not isinstance(tenant, str) or not tenant:
        return None
    return Resource(resource_type=rule.resource_type, resource_id=str(named), tenant=tenant)


def _resolve(pointer: str, value: Any) -> Any:
    """The value at a JSON pointer (RFC 6901), or `_ABSENT`."""
    if pointer == "":
        return value
    for part in pointer.removeprefix("/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isascii() and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return _ABSENT
    return value
