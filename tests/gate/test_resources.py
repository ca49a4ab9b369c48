from __future__ import annotations

from dataclasses import replace

import pytest

from toolcrib.gate.resources import ABSENT, lookup_argument, names_one, resource_from_answer
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
        ({"shipment": {}}, ABSENT),
        ({"shipment": "S-204"}, ABSENT),
        ({}, ABSENT),
        ("text", ABSENT),
    ],
    ids=str,
)
def test_the_argument_that_names_the_resource_is_found_as_it_was_sent(arguments, named):
    found = lookup_argument(RULE, arguments)
    assert found == named
    assert (found is ABSENT) == (named is ABSENT)


@pytest.mark.parametrize("wrap", [list, tuple], ids=["lists", "tuples"])
def test_a_pointer_goes_through_tuples_as_through_lists(wrap):
    rule = replace(RULE, argument="/rows/1/0/id")
    rows = wrap([wrap([]), wrap([{"id": "S-1"}])])
    assert lookup_argument(rule, {"rows": rows}) == "S-1"
    assert lookup_argument(replace(RULE, argument="/rows/2"), {"rows": rows}) is ABSENT


@pytest.mark.parametrize(
    ("value", "one"),
    [("S-1", True), (0, True), (2**70, True), ("", False), (None, False), (True, False), (1.5, False), ([], False),
     (("S-1",), False), ({"$ne": None}, False), (ABSENT, False)],
    ids=repr,
)  # fmt: skip
def test_only_text_and_whole_numbers_name_a_resource(value, one):
    assert names_one(value) is one


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


@pytest.mark.parametrize("named", [["S-1", "S-2"], ("S-1",), {"any": "S-1"}, True, None, ""], ids=str)
def test_what_cannot_be_one_identifier_names_no_resource(named):
    assert resource_from_answer(RULE, named, answer({"owner": {"tenant": "acme"}})) is None
