from __future__ import annotations

from dataclasses import replace

import pytest

from toolcrib.gate.resources import (
    ABSENT,
    lookup_argument,
    names_one,
    resource_from_answer,
    resource_from_body,
    resource_from_resolver,
)
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


POLICY = replace(RULE, check="policy", owner="/owner/user")


@pytest.mark.parametrize(
    "structured", [{}, {"owner": {}}, {"owner": {"tenant": None}}, {"owner": {"tenant": ""}}], ids=str
)
def test_without_a_tenant_policy_alone_may_judge_and_a_comparison_may_not(structured):
    found = resource_from_answer(POLICY, "S-1", answer(structured))
    assert found == Resource(resource_type="shipment", resource_id="S-1", tenant="", owner="")
    assert resource_from_answer(RULE, "S-1", answer(structured)) is None


def test_the_owner_is_read_beside_the_tenant():
    found = resource_from_body(POLICY, 204, {"owner": {"tenant": "acme", "user": "ann"}})
    assert found == Resource(resource_type="shipment", resource_id="204", tenant="acme", owner="ann")
    assert resource_from_body(RULE, 204, {"owner": {"tenant": "acme", "user": "ann"}}).owner == ""


def test_whole_numbers_identify_tenants_and_owners_by_their_digits():
    found = resource_from_body(POLICY, "S-1", {"owner": {"tenant": 42, "user": 7}})
    assert (found.tenant, found.owner) == ("42", "7")


@pytest.mark.parametrize("odd", [["acme"], {"id": "acme"}, True, 1.5], ids=str)
@pytest.mark.parametrize("place", ["tenant", "user"])
def test_what_is_not_plainly_an_identifier_makes_no_resource_for_policy_either(place, odd):
    body = {"owner": {"tenant": "acme", "user": "ann", place: odd}}
    assert resource_from_body(POLICY, "S-1", body) is None


@pytest.mark.parametrize("body", [None, [], "acme", 5, True], ids=str)
def test_an_answer_that_describes_nothing_is_none_for_policy_too(body):
    assert resource_from_body(POLICY, "S-1", body) is None


def test_an_empty_pointer_is_no_place_and_not_the_whole_answer():
    assert resource_from_body(replace(RULE, tenant=""), "S-1", {"tenant": "acme"}) is None
    assert resource_from_body(replace(POLICY, tenant="", owner=""), "S-1", {"tenant": "acme"}).tenant == ""


def resolved(**fields):
    return Resource(**{"resource_type": "shipment", "resource_id": "S-1", "tenant": "acme", **fields})


def test_a_resolvers_word_counts_for_the_resource_that_was_asked_for():
    assert resource_from_resolver(RULE, "S-1", resolved()) == resolved()
    assert resource_from_resolver(RULE, 7, resolved(resource_id="7")) == resolved(resource_id="7")
    assert resource_from_resolver(POLICY, "S-1", resolved(tenant="")) == resolved(tenant="")


@pytest.mark.parametrize(
    "found",
    [
        None,
        "acme",
        {"tenant": "acme"},
        resolved(resource_id="S-2"),
        resolved(resource_type="order"),
        resolved(tenant=""),
    ],
    ids=str,
)
def test_a_resolver_that_speaks_of_something_else_gives_nothing(found):
    assert resource_from_resolver(RULE, "S-1", found) is None
