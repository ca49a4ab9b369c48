"""An agent that acts for a user: both are looked at, and only what both may is permitted.

Below: `types/`. Above: `jwt.py`.

A token that carries `act` (RFC 8693) has the user as its subject and the agent as `act.sub`. The operator says in
`[[identity.agents]]` what an agent may; the token says it of the user.

Invariants
1. An agent that the operator did not name is nobody, whatever its token says of it.
2. Agent and user are of one tenant.
3. The token's scopes bound both: neither has one that the token lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolcrib.identity.refused import Refused, shown
from toolcrib.types import Caller, JsonObject

MAX_ACTORS = 4
"""Actors in one token: the current one and those before it, which are history and decide nothing."""


def delegated(user: Caller, claims: JsonObject, *, agents: Sequence[Caller], issuer: str) -> Caller | Refused:
    """Who asks with this token: the user, or the agent that acts for the user.

    Args:
        user: as the claims describe it.
        agents: those the operator named. One without a tenant may act in any, one at a time.
        issuer: of the token; an actor that another issuer vouches for is not known here.
    Source:
        RFC 8693, section 4.1: of a chain of actors only the outermost counts for access control.
    """
    if "act" not in claims:
        return user
    actor = claims["act"]
    fault = _fault(actor, issuer)
    if fault:
        return Refused(fault)
    named = [agent for agent in agents if agent.subject == actor["sub"]]
    if not named:
        return Refused(f"no [[identity.agents]] row names the actor {shown(actor['sub'])}")
    fitting = [agent for agent in named if agent.tenant in ("", user.tenant)]
    if not fitting:
        return Refused(f"the agent {shown(actor['sub'])} is of another tenant than the user it acts for")
    agent = max(fitting, key=lambda one: one.tenant != "")  # its row for this tenant before the one for any
    return replace(
        agent,
        on_behalf_of=user.subject,
        tenant=user.tenant,
        scopes=agent.scopes & user.scopes,
        stage=agent.stage or user.stage,
        acting_for=user,
        credential=user.credential,
    )


def _fault(actor: Any, issuer: str) -> str:
    """What is wrong with an `act` claim, or ""."""
    if not isinstance(actor, Mapping) or not isinstance(actor.get("sub"), str) or not actor["sub"]:
        return "the token's actor has no subject"
    if actor.get("iss", issuer) != issuer:
        return "another issuer vouches for the token's actor"
    n_actors = 0
    here: Any = actor
    while isinstance(here, Mapping):
        n_actors, here = n_actors + 1, here.get("act")
        if n_actors > MAX_ACTORS:
            return f"the token names more than {MAX_ACTORS} actors"
    return "" if here is None else "the token's chain of actors is malformed"
