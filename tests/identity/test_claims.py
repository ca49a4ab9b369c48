"""Claims to a caller: where the operator says they stand, as what they are, and never more than is there."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.identity.claims import caller_from_claims
from toolcrib.identity.refused import Refused
from toolcrib.types import Caller, CallerKind, Credential


def read(claims: dict[str, Any], mapping: dict[str, Any] | None = None) -> Caller | Refused:
    credential = Credential(kind="jwt", issuer="i")
    return caller_from_claims(claims, mapping or {}, environment="test", region="eu", credential=credential)


def caller(**fields: Any) -> Caller:
    return Caller(**{"subject": "ann", "environment": "test", "region": "eu", **fields})


@pytest.mark.parametrize(
    ("claims", "mapping", "expected"),
    [
        ({}, {}, {}),
        ({"scope": "a b  c"}, {}, {"scopes": {"a", "b", "c"}}),
        ({"scp": ["a", "b"]}, {}, {"scopes": {"a", "b"}}),
        ({"scope": "a", "scp": "b"}, {}, {"scopes": {"a"}}),
        ({"scope": "a"}, {"scopes": "x"}, {}),
        ({"org": {"id": "acme"}}, {"tenant": "org.id"}, {"tenant": "acme"}),
        ({"https://x.example/t": "acme"}, {"tenant": "/https:~1~1x.example~1t"}, {"tenant": "acme"}),
        ({"a~b": {"c": "acme"}}, {"tenant": "/a~0b/c"}, {"tenant": "acme"}),
        ({"groups": ["first", "second"]}, {"tenant": "/groups/1"}, {"tenant": "second"}),
        ({"groups": ["first"]}, {"tenant": "/groups/1"}, {}),
        ({"tenant": "theirs"}, {"tenant": {"value": "acme"}}, {"tenant": "acme"}),
        ({}, {"roles": {"value": ["a", "b"]}}, {"roles": {"a", "b"}}),
        ({"realm": {"roles": ["a"]}}, {"roles": "realm.roles", "features": "realm.flags"}, {"roles": {"a"}}),
        ({"roles": ["two words"]}, {"roles": "roles"}, {"roles": {"two words"}}),
        ({"k": "workload"}, {"kind": "k"}, {"kind": CallerKind.WORKLOAD}),
        ({}, {"kind": "k", "tenant": "t", "roles": "r", "stage": "s"}, {}),
        ({"t": None, "r": None, "e": ""}, {"tenant": "t", "roles": "r", "stage": "e"}, {}),
        ({}, {"environment": "env", "region": "reg"}, {"environment": "", "region": ""}),
        ({"env": "prod"}, {"environment": "env"}, {"environment": "prod"}),
    ],
)
def test_claims_are_read_where_the_mapping_says(
    claims: dict[str, Any], mapping: dict[str, Any], expected: dict[str, Any]
) -> None:
    sets = {field: frozenset(value) if isinstance(value, set) else value for field, value in expected.items()}
    assert read({"sub": "ann", **claims}, mapping) == caller(**sets)


def test_another_claim_may_name_the_subject() -> None:
    assert read({"sub": "0xab", "email": "ann@x.example"}, {"subject": "email"}) == caller(subject="ann@x.example")
    assert isinstance(read({"sub": "0xab"}, {"subject": "email"}), Refused)


@pytest.mark.parametrize(
    ("claims", "mapping"),
    [
        ({"sub": "ann", "tenant": 7}, {"tenant": "tenant"}),
        ({"sub": "ann", "tenant": ["acme"]}, {"tenant": "tenant"}),
        ({"sub": "ann", "tenant": False}, {"tenant": "tenant"}),
        ({"sub": "ann", "roles": {"admin": True}}, {"roles": "roles"}),
        ({"sub": "ann", "roles": ["a", 1]}, {"roles": "roles"}),
        ({"sub": "ann", "roles": [""]}, {"roles": "roles"}),
        ({"sub": "ann", "scope": 7}, {}),
        ({"sub": "ann", "org": "acme"}, {"tenant": "org.id"}),
        ({"sub": "ann", "k": "robot"}, {"kind": "k"}),
        ({"sub": "ann\n"}, {}),
        ({"sub": "ann\x00"}, {}),
        ({"sub": "a\ud800"}, {}),
        ({"sub": "ann", "roles": ["a\x1b"]}, {"roles": "roles"}),
        ({"sub": ["ann"]}, {}),
        ({}, {}),
        ({"sub": "ann"}, {"nickname": "sub"}),
    ],
    ids=repr,
)
def test_a_claim_that_is_not_what_it_should_be_refuses_the_token(claims: Any, mapping: Any) -> None:
    assert isinstance(read(claims, mapping), Refused)


def test_nothing_in_the_claims_but_what_is_mapped_matters() -> None:
    full = {"sub": "ann", "tenant": "x", "roles": ["admin"], "clearance": "top", "kind": "agent", "on_behalf_of": "b"}
    assert read(full) == caller()
