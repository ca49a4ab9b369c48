"""The two texts that ship with the package: the schema every policy must fit and the policy that holds by default."""

from __future__ import annotations

from importlib.resources import files


def default_policy_text() -> str:
    """The built-in policy, readable and commented: what `toolcrib init` writes."""
    return (files(__package__) / "default_policy.cedar").read_text(encoding="utf-8")


def schema_text() -> str:
    """The Cedar schema: which principals, tools, actions and context a policy can speak of."""
    return (files(__package__) / "schema.cedarschema").read_text(encoding="utf-8")
