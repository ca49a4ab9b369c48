"""Which resource a call names and whose it is: a pointer out, the owner's answer in. The asking is done elsewhere.

    lookup_argument ─▶ names_one ─▶ (a read tool, a URL, or a resolver in Python) ─▶ resource_from_…
                                                                                   └▶ None: fault_of_…, for the operator

Above: `owners.py` asks the owner between the functions; `checks.py` compares the tenant, policy judges the rest.

Invariants
1. The tenant and the owner come from whoever owns the resource, never from the call's arguments (I7).
2. An answer that is not plainly a tenant or an owner is no answer: None, and the gate refuses (I2). So is a missing
   tenant where the rule compares tenants; where policy alone judges, it is "".
3. Absent isn't null: a place that holds anything names something, and what can't name one resource is refused.
4. A fault names places and types, never a value of the call or of the answer: it is logged and written into traces.
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
    """The resource as its owner's read tool described it; None when it does not know it or could not say."""
    return resource_from_body(rule, named, answer.structured) if answer.code is Code.OK else None


def resource_from_body(rule: ResourceRule, named: Any, body: Any) -> Resource | None:
    """The resource as its owner described it in JSON; None when that says nothing of it.

    Args:
        named: the value from the arguments, as it was sent.
        body: what the owner's endpoint or tool answered; None for no answer.
    """
    if not names_one(named) or fault_of_body(rule, body):
        return None
    tenant, owner = _identifier(rule.tenant, body), _identifier(rule.owner, body)
    if tenant is None or owner is None:
        return None
    return Resource(resource_type=rule.resource_type, resource_id=str(named), tenant=tenant, owner=owner)


def fault_of_answer(rule: ResourceRule, answer: ToolResult) -> str:
    """Likewise of an answer of its owner's read tool."""
    if answer.code is not Code.OK:
        return f"its owner does not know it: its lookup tool {rule.lookup_tool} answered with {answer.code}"
    if answer.structured is None:
        return f"its lookup tool {rule.lookup_tool} gave no structured content"
    return fault_of_body(rule, answer.structured)


def fault_of_body(rule: ResourceRule, body: Any) -> str:
    """Why an owner's answer makes no resource under this rule, whatever it was asked about; "" where it makes one."""
    if not isinstance(body, Mapping):
        return "its owner's answer is no JSON object"
    for key, pointer in (("tenant", rule.tenant), ("owner", rule.owner)):
        if _identifier(pointer, body) is None:
            return f"what stands at {pointer} in its owner's answer is no {key}: neither text nor a whole number"
    if rule.check == "tenant" and not _identifier(rule.tenant, body):
        return f"nothing at {rule.tenant} in its owner's answer" if rule.tenant else "the rule says no `tenant`"
    return ""


def resource_from_resolver(rule: ResourceRule, named: Any, found: Any) -> Resource | None:
    """What a resolver registered in Python gave, if it is the resource that was asked for; else None.

    A resolver speaks of one resource: an answer of another type or id is a mistake in it, and nobody's permission.
    """
    if not names_one(named) or not isinstance(found, Resource) or fault_of_resolver(rule, named, found):
        return None
    return found


def fault_of_resolver(rule: ResourceRule, named: Any, found: Any) -> str:
    """What is wrong with what a resolver gave; "" where nothing is, also for None: it knows no such resource."""
    if found is None:
        return ""
    if not isinstance(found, Resource):
        return "its resolver gave something other than a Resource"
    if (found.resource_type, found.resource_id) != (rule.resource_type, str(named)):
        return "its resolver answered with another resource than it was asked about"
    return "its resolver gave no tenant" if rule.check == "tenant" and not found.tenant else ""


def _identifier(pointer: str, body: JsonObject) -> str | None:
    """The text at a pointer, a whole number as digits; "" where nothing or null is there; None for anything else."""
    if not pointer:
        return ""
    value = _resolve(pointer, body)
    if value is ABSENT or value is None or value == "":
        return ""
    return str(value) if names_one(value) else None


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
