from __future__ import annotations

import pytest

from toolcrib.gate.resources import lookup_argument, resource_from_answer
from toolcrib.types import Code, Resource, ResourceRule, ToolResult

RULE = ResourceRule(
    resource_type="shipment",
    pattern="freight.*",
    argument="/shipment/id",
    lookup_tool="freight.shipment_get",
    lookup_argument="shipment_id",
    tenant="/owner/tenant",
)


def answer(structured, code=Code.OK):
    return ToolResult(code=code, structured=structured)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"shipment": {"id": "S-204"}}, "S-204"),
        ({"shipment": {"id": 204}}, 204),
        ({"shipment": {"id": None}}, None),
        ({"shipment": {}}, None),
        ({"shipment": "S-204"}, None),
        ({}, None),
        ("text", None),
    ],
    ids=str,
)
def test_the_argument_that_names_the_resource_is_found_as_it_was_sent(arguments, named):
    assert lookup_argument(RULE, arguments) == named


def test_the_tenant_is_the_owners_word():
    found = resource_from_answer(RULE, "S-204", answer({"owner": {"tenant": "acme"}}))
    assert found == Resource(resource_type="shipment", resource_id="S-204", tenant="acme")


@pytest.mark.parametrize(
    "result",
    [
        answer({"owner": {"tenant": "acme"}}, Code.TOOL_ERROR),
        answer({"owner": {"tenant": "acme"}}, Code.TIMEOUT),
        answer({"owner": {"tenant": ""}}),
        answer({"owner": {"tenant": ["acme"]}}),
        answer({"owner": {}}),
        answer(None),
        answer("acme"),
    ],
    ids=str,
)
def test_an_answer_that_is_not_plainly_a_tenant_is_none(result):
    assert resource_from_answer(RULE, "S-204", result) is None


@pytest.mark.parametrize("named", [["S-1", "S-2"], {"any": "S-1"}, True], ids=str)
def test_what_cannot_be_one_identifier_names_no_resource(named):
    assert resource_from_answer(RULE, named, answer({"owner": {"tenant": "acme"}})) is None
