"""Values from other clients' files: `${…}` into references, secrets into references to variables the operator will set.

    "${NAME}"            env:NAME                          "Bearer ${NAME}"   Bearer env:NAME
    "${NAME:-default}"   the default, unless a secret      "${env:NAME}"      env:NAME (Cursor, VS Code)
    "${input:id}"        env:ID (VS Code)                  "ghp_…"            env:<KEY>, and a note

Invariants
1. A literal that looks like a secret comes out of here as a reference, never as itself; notes name variables alone.
2. One variable stands for one value: where two servers keep different secrets under one key, the server's name is put
   in front.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.settings.plaintext import is_plain_secret
from toolcrib.settings.references import parse_reference

_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCHEME = re.compile(r"(?P<scheme>(?i:bearer|basic|token|bot|jwt|pat|api-?key))[ \t]+(?P<rest>\S+)")
"""Only words known to stand before a token: of a password of two words, the first is a secret, too."""
_RANDOM = re.compile(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9_+=-]{20,}")
"""Long and mixed, as keys are. Enough to ask for a variable while taking over, not enough to refuse a configuration."""
_EDITOR_VARIABLES = frozenset(
    {"workspaceFolder", "workspaceFolderBasename", "workspaceRoot", "userHome", "pathSeparator", "cwd", "file"}
)
Remark = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """What stands in `${…}`. `name` is that of an environment variable, "" when only the client could tell."""

    name: str
    default: str | None = None
    from_input: str = ""


def variables_in(text: str) -> list[Variable]:
    """Every `${…}` of a text, in order."""
    return [_variable(inner) for inner in _VARIABLE.findall(text)]


def _variable(inner: str) -> Variable:
    if inner.startswith("input:"):
        return Variable(name=variable_name(inner.removeprefix("input:")), from_input=inner.removeprefix("input:"))
    name, separator, default = inner.removeprefix("env:").partition(":-")
    if not _NAME.fullmatch(name) or (name in _EDITOR_VARIABLES and not inner.startswith("env:")):
        return Variable(name="")
    return Variable(name=name, default=default if separator else None)


def variable_name(text: str) -> str:
    """A name for an environment variable made from any text."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").upper() or "SECRET"
    return f"_{name}" if name[0].isdigit() else name


class VariableNames:
    """Which environment variable stands for which value. Holds secrets while a file is taken over, and shows none."""

    def __init__(self, texts: Iterable[str]) -> None:
        # Variables that the file itself reads come first: no secret may be sent to one of those.
        used = (variable.name for text in texts for variable in variables_in(text) if variable.name)
        self._values: dict[str, str | None] = dict.fromkeys(used)

    def name_for(self, key: str, value: str, *, server_id: str, prefixed: bool) -> str:
        """The variable for this value: the key, else server and key, else with a number."""
        own = variable_name(f"{server_id}_{key}")
        plain = [] if prefixed else [variable_name(key)]
        candidates = [*plain, own, *(f"{own}_{number}" for number in range(2, 10_000))]
        name = next(c for c in candidates if c not in self._values or self._values[c] == value)
        self._values[name] = value
        return name


def take_values(
    values: Mapping[str, str], *, table: str, server_id: str, names: VariableNames, remark: Remark
) -> dict[str, str]:
    """The values of `env` or `headers` as `toolcrib.toml` may hold them."""
    return {
        key: _Taking(key=key, table=table, server_id=server_id, names=names, remark=remark).take(value)
        for key, value in values.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taking:
    """One key of one server on its way over."""

    key: str
    table: str
    server_id: str
    names: VariableNames
    remark: Remark

    def take(self, value: str) -> str:
        variables = variables_in(value)
        if not variables:
            return self._literal(value)
        scheme = _SCHEME.fullmatch(value)
        alone = _VARIABLE.fullmatch(scheme["rest"] if scheme else value)
        if alone and variables[0].name:
            return self._one_variable(variables[0], f"{scheme['scheme']} " if scheme else "")
        return self._composed(value)

    def _literal(self, value: str) -> str:
        secret, reads_as_reference = self._is_secret(value), parse_reference(value) is not None
        if not secret and not reads_as_reference:
            return value
        scheme = _SCHEME.fullmatch(value) if secret else None
        name = self._own_variable(scheme["rest"] if scheme else value)
        if scheme:
            self._say(
                f"looked like a secret and was not written: set {name} to it, without the word {scheme['scheme']}"
            )
            return f"{scheme['scheme']} env:{name}"
        why = "looked like a secret" if secret else "would be read as a reference here"
        self._say(f"{why} and was not written: set {name} to it")
        return f"env:{name}"

    def _one_variable(self, variable: Variable, prefix: str) -> str:
        if variable.default is not None:
            if not (self._is_secret(prefix + variable.default) or is_plain_secret(variable.name, variable.default)):
                self._say(f"the default of {variable.name} was taken over; the variable is no longer read")
                return self._literal(prefix + variable.default)
            self._say(f"the default of {variable.name} may be a secret and was not written: set {variable.name}")
        elif variable.from_input:
            self._say(f"the client asked for input {variable.from_input!r}: set {variable.name} instead")
        else:
            self._say(f"reads the variable {variable.name}: set it before toolcrib starts")
        return f"{prefix}env:{variable.name}"

    def _composed(self, value: str) -> str:
        filled = with_defaults(value)
        if filled is not None and not self._is_secret(filled):
            self._say("the defaults of its variables were taken over; the variables are no longer read")
            return self._literal(filled)
        name = self._own_variable(value)
        self._say(f"was put together from variables, which cannot be taken over: set {name} to the whole text")
        return f"env:{name}"

    def _is_secret(self, value: str) -> bool:
        looks_random = _RANDOM.fullmatch(value) is not None and not self.key.upper().endswith(("ID", "URL", "PATH"))
        return is_plain_secret(self.key, value) or looks_random

    def _own_variable(self, value: str) -> str:
        return self.names.name_for(self.key, value, server_id=self.server_id, prefixed=self.table == "headers")

    def _say(self, what: str) -> None:
        self.remark(f"`{self.key}` in {self.table}: {what}")


def with_defaults(text: str) -> str | None:
    """The text with every `${NAME:-default}` replaced by its default; None when a variable has none."""
    if any(variable.default is None for variable in variables_in(text)):
        return None
    return _VARIABLE.sub(lambda match: _variable(match[1]).default or "", text)


def as_texts(values: Any, *, table: str, remark: Remark) -> dict[str, str]:
    """The texts of a JSON object; numbers and booleans become texts, anything else is left out and told."""
    if not isinstance(values, Mapping):
        if values is not None:
            remark(f"`{table}` is not an object and was left out")
        return {}
    found = {}
    for key, value in values.items():
        if isinstance(value, bool | int | float):
            found[key] = str(value).lower() if isinstance(value, bool) else str(value)
        elif isinstance(value, str):
            found[key] = value
        else:
            remark(f"`{key}` in {table} is not a text and was left out")
    return found
