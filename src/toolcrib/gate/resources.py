"""Which resource a call names and whose it is: a pointer out, the owner's answer in. The asking is done elsewhere.

Above: `crib.py` asks the lookup tool between the two functions; `checks.py` compares the tenant.

Invariants
1. The tenant comes from the resource's owner, never from the call's arguments (I7).
2. An answer that is not plainly a tenant is no answer: None, and the gate refuses (I2).
3. Absent isn't null: a place that holds anything names something, and what can't name one resource is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from toolcrib.types import Code, JsonObject, Resource, ResourceRule, ToolResult


class _Mark(Enum):
    ABSENT = "absent"


ABSENT: Final = _Mark.ABSENT
"""What `lookup_argument` gives for a call whose arguments have nothing in the rule's place."""


def lookup_argument(rule: ResourceRule, arguments: JsonObject) -> Any:
    """The value in the place that names the resource, as it was sent; `ABSENT` when nothing is there.

    Null is a value: a tool may read it as "all of them". `names_one` tells whether the value names a resource.
    """
    return _resolve(rule.argument, arguments)


def names_one(value: Any) -> bool:
    """Whether a value can name one resource: a string that isn't empty, or a whole number.

    Nobody's owner need be asked about anything else; the gate refuses it.
    """
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def resource_from_answer(rule: ResourceRule, named: Any, answer: ToolResult) -> Resource | None:
    """The resource as its owner's tool described it; None when it does not know it or could not say."""
    if answer.code is not Code.OK or not names_one(named):
        return None
    tenant = _resolve(rule.tenant, answer.structured)
    if not isinstance(tenant, str) or not tenant:
        return None
    return Resource(resource_type=rule.resource_type, resource_id=str(named), tenant=tenant)


def _resolve(pointer: str, value: Any) -> Any:
    """The value at a JSON pointer (RFC 6901), or `ABSENT`. A tuple is the list that it becomes on the wire."""
    if pointer == "":
        return value
    for part in pointer.removeprefix("/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list | tuple) and name.isascii() and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return ABSENT
    return value
