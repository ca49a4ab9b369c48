"""What a refresh says of `[[resources]]` rows that cannot be meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.flow.worlds import tool
from toolcrib.resource_advice import resource_warnings
from toolcrib.settings.loading import settings_from_text
from toolcrib.types import CatalogSnapshot, Risk, Tool, ToolMetadata, ToolState, WithheldTool

TEXT = {"type": "string"}
ORDER = {"type": "object", "properties": {"order_id": TEXT, "note": TEXT}}
ANSWER = {"type": "object", "properties": {"tenant": TEXT, "owner": {"type": "object", "properties": {"user": TEXT}}}}
LOOKUP = tool("order_owner", properties={"order_id": TEXT}, outputSchema=ANSWER)


def row(**changed: str) -> str:
    keys = {
        "type": "Order",
        "tools": "shop.*",
        "argument": "/order_id",
        "lookup_tool": "own.order_owner",
        "tenant": "/tenant",
        **changed,
    }
    return "[[resources]]\n" + "".join(f'{key} = "{value}"\n' for key, value in keys.items() if value)


def in_service(server_id: str, definition: Any, *, risk: Risk = Risk.READ) -> Tool:
    return Tool(
        tool_id=f"{server_id}.{definition['name']}",
        server_id=server_id,
        name=definition["name"],
        definition=definition,
        digest="sha256:0",
        state=ToolState.APPROVED,
        metadata=ToolMetadata(risk=risk),
    )


def waiting(server_id: str, name: str, definition: Any) -> WithheldTool:
    return WithheldTool(
        tool_id=f"{server_id}.{name}",
        server_id=server_id,
        name=name,
        definition=definition,
        digest="raw:0",
        state=ToolState.QUARANTINED,
        code="unreviewed",
        reason="",
    )


def warnings(
    toml: str, *schemas: Any, lookup: Any = LOOKUP, withheld: tuple[WithheldTool, ...] = (), risk: Risk = Risk.READ
) -> tuple[str, ...]:
    settings = settings_from_text(toml, path=Path("/crib/toolcrib.toml"))
    shop = [in_service("shop", {"name": f"t{n}", "inputSchema": schema}) for n, schema in enumerate(schemas)]
    known = (in_service("own", lookup, risk=risk), *shop) if lookup else tuple(shop)
    return resource_warnings(settings, CatalogSnapshot(version="v", tools=known, withheld=withheld))


def test_a_rule_whose_places_are_all_there_warns_of_nothing() -> None:
    assert warnings(row(owner="/owner/user"), ORDER) == ()


def test_an_argument_that_no_tool_takes_is_told_with_its_line_and_a_close_one() -> None:
    (told,) = warnings("[crib]\n" + row(argument="/oder_id", lookup_argument="order_id"), ORDER, ORDER)
    assert told.startswith("toolcrib.toml:2: [[resources]] argument `/oder_id`: no tool under `shop.*`")
    assert told.endswith("did you mean /order_id?")


def test_an_argument_that_only_some_tools_take_is_no_mistake() -> None:
    assert warnings(row(), ORDER, {"type": "object", "properties": {"other": TEXT}}) == ()


def test_tools_that_wait_for_a_reviewer_are_looked_at_and_malformed_ones_are_no_trouble() -> None:
    known = waiting("shop", "new", {"name": "new", "inputSchema": ORDER})
    odd = waiting("shop", "#1", ["no", "definition"])
    lacks = {"type": "object", "properties": {"other": TEXT}}
    assert len(warnings(row(), lacks)) == 1
    assert warnings(row(), lacks, withheld=(known,)) == ()
    assert warnings(row(), lacks, withheld=(odd,)) == (), "nothing is known of what it takes"


def test_a_glob_that_matches_nothing_is_told_elsewhere() -> None:
    assert warnings(row(tools="nowhere.*", argument="/oder_id", lookup_argument="order_id"), ORDER) == ()


def test_a_wide_glob_that_holds_the_lookup_tool_hides_no_misspelt_argument() -> None:
    lookup = tool("order_owner", properties={"id": TEXT}, outputSchema=ANSWER)
    (told,) = warnings(row(tools="*", argument="/id"), ORDER, lookup=lookup)
    assert "only the lookup tool itself" in told
    assert warnings(row(tools="own.*", argument="/id"), lookup=lookup) == ()


NESTED = {"type": "object", "properties": {"shipment": {"$ref": "#/$defs/s"}}, "$defs": {"s": ORDER}}
LIST = {"type": "object", "properties": {"rows": {"type": "array", "items": ORDER}}}
PAIR = {"type": "object", "properties": {"rows": {"prefixItems": [TEXT, ORDER], "items": False}}}
LOOP: dict[str, Any] = {
    "properties": {"child": {"$ref": "#"}, "left": {"anyOf": [{"$ref": "#"}] * 40}},
    "anyOf": [{"$ref": "#"}] * 40,
}


@pytest.mark.parametrize(
    ("schema", "pointer", "known"),
    [
        (NESTED, "/shipment/order_id", True),
        (NESTED, "/shipment/oder_id", False),
        (LIST, "/rows/0/order_id", True),
        (LIST, "/rows/order_id", False),
        (PAIR, "/rows/1/order_id", True),
        (PAIR, "/rows/2/order_id", False),
        ({"anyOf": [{"type": "null"}, ORDER]}, "/order_id", True),
        ({"anyOf": [{"type": "null"}, ORDER]}, "/oder_id", False),
        ({**ORDER, "anyOf": [{"required": ["note"]}, {"required": ["order_id"]}]}, "/oder_id", False),
        ({**ORDER, "if": {"required": ["note"]}, "then": {"properties": {"late": TEXT}}}, "/late", True),
        ({"type": "object", "patternProperties": {"_id$": TEXT}}, "/order_id", True),
        ({"type": "object", "patternProperties": {"_id$": TEXT}}, "/order", False),
        ({"type": "object", "properties": {"a/b": TEXT}}, "/a~1b", True),
        ({"type": "object", "properties": {"order": TEXT}}, "/order/id", False),
        ({"type": "object", "properties": {}}, "/order_id", False),
        ({"type": "object", "additionalProperties": False}, "/order_id", False),
        (LOOP, "/child/left/child/x", False),
        (LOOP, "/child/left/child", True),
    ],
)
def test_a_place_is_looked_for_through_the_whole_schema(schema: Any, pointer: str, known: bool) -> None:
    toml = row(argument=pointer, lookup_tool="", tenant="")
    assert (warnings(toml, schema) == ()) is known


@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        {},
        {"type": "object"},
        {**ORDER, "additionalProperties": True},
        {**ORDER, "additionalProperties": {}},
        {"$ref": "https://elsewhere.example/schema"},
        {**ORDER, "allOf": [{"type": "object", "additionalProperties": {"type": "string"}}]},
        {"type": "object", "patternProperties": {"(": TEXT}},
    ],
    ids=str,
)
def test_a_schema_that_is_open_to_anything_warns_of_nothing(schema: Any) -> None:
    assert warnings(row(argument="/oder_id", lookup_tool="", tenant=""), schema) == ()


@pytest.mark.parametrize(
    ("lookup", "said"),
    [
        (tool("order_owner", properties={"number": TEXT}, outputSchema=ANSWER), "takes no `order_id`"),
        ({**LOOKUP, "inputSchema": {**ORDER, "required": ["order_id", "note"]}}, "wants note as well"),
        ({**LOOKUP, "outputSchema": {"type": "object", "properties": {"tenants": TEXT}}}, "did you mean /tenants?"),
        (
            {**LOOKUP, "outputSchema": {"type": "object", "properties": {"result": ANSWER}}},
            "did you mean /result/tenant?",
        ),
        (tool("order_owner", properties={"order_id": TEXT}), "structuredContent"),
    ],
    ids=["argument", "more-arguments", "tenant", "wrapped", "no-output-schema"],
)
def test_a_lookup_tool_that_cannot_answer_is_told(lookup: Any, said: str) -> None:
    (told,) = warnings(row(), ORDER, lookup=lookup)
    assert "own.order_owner" in told
    assert said in told


def test_the_place_of_the_owner_is_looked_for_too() -> None:
    (told,) = warnings(row(owner="/owner/usr"), ORDER)
    assert told.endswith("did you mean /owner/user?")


def test_a_lookup_tool_that_may_write_is_told_and_rules_that_share_one_are_told_once() -> None:
    (told,) = warnings(row() + row(type="Parcel"), ORDER, risk=Risk.WRITE)
    assert "own.order_owner is a lookup_tool and may write" in told


def test_a_lookup_tool_that_does_not_exist_is_told_elsewhere() -> None:
    assert warnings(row(), ORDER, lookup=None) == ()
