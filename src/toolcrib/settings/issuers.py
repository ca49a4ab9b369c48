"""Issuers of tokens and the tenants they speak for: what one issuer says of a tenant is not what another may say of it.

A caller is known by its tenant and subject, and both come out of the token. Two issuers that could name the same tenant
could each make the other's users. Above: `checks.py`; like there, values that are wrong in themselves are passed over.

Invariants
1. With two or more issuers each row says of which tenants its tokens are, and no tenant has two issuers.
2. One issuer alone may leave that to its tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolcrib.settings.faults import Problem
from toolcrib.settings.lines import KeyPath, Lines

_HINT = 'add tenants = ["acme"], or write in its claims: tenant = { value = "acme" }'

_Rows = Sequence[tuple[int, Mapping[str, Any]]]


def issuer_problems(rows: _Rows, *, lines: Lines) -> Iterator[Problem]:
    """What is wrong between `[[identity.jwt]]` rows, each given with its position."""
    for number, row in rows:
        yield from _constant_elsewhere(number, row)
    if len({row.get("issuer") for _, row in rows if isinstance(row.get("issuer"), str)}) < 2:
        return
    first: dict[str, tuple[str, KeyPath]] = {}
    for number, row in rows:
        issuer = row.get("issuer")
        if not isinstance(issuer, str):
            continue
        places = _tenants(number, row)
        if not places:
            what = "[[identity.jwt]] does not say of which tenants its tokens are, and there are several issuers"
            yield Problem(path=("identity", "jwt", number), what=what, hint=_HINT)
        for tenant, path in places.items():
            other, place = first.setdefault(tenant, (issuer, path))
            if other != issuer:
                what = f"the tenant `{tenant}` has two issuers, the other one at {lines.where(place)}"
                yield Problem(path=path, what=what, hint="either could name the other's users: leave it to one")


def _constant_elsewhere(number: int, row: Mapping[str, Any]) -> Iterator[Problem]:
    tenants, constant = row.get("tenants"), _constant(row)
    if isinstance(tenants, list) and constant is not None and constant not in tenants:
        what = f"every token is said to be of `{constant}`, which is not among `tenants`: nobody could come in"
        yield Problem(path=("identity", "jwt", number, "tenants"), what=what, hint="keep one of the two")


def _tenants(number: int, row: Mapping[str, Any]) -> dict[str, KeyPath]:
    """The tenants that this row's tokens can be of, and where that is written; empty when it does not say."""
    base: KeyPath = ("identity", "jwt", number)
    listed = row.get("tenants")
    if isinstance(listed, list):
        return {one: (*base, "tenants", place) for place, one in enumerate(listed) if isinstance(one, str)}
    constant = _constant(row)
    return {} if constant is None else {constant: (*base, "claims", "tenant")}


def _constant(row: Mapping[str, Any]) -> str | None:
    """The tenant that the mapping gives to every token, None where it comes out of the token."""
    claims = row.get("claims")
    source = claims.get("tenant") if isinstance(claims, Mapping) else None
    value = source.get("value") if isinstance(source, Mapping) else None
    return value if isinstance(value, str) else None
