"""References to secrets: `env:NAME`, `file:PATH`, `caller:NAME`, and each behind one word, as in `Bearer env:NAME`.

`caller:NAME` is the credential of whoever calls, from the vault; it is read only where a server is opened for a caller.

Invariants
1. No error says anything of a value: only the name of the variable or the path of the file.
2. A secret is read when it is needed and not kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolcrib.errors import ConfigError, NoCredentialError
from toolcrib.settings.model import resolved
from toolcrib.types import SecretRef

_REFERENCE = re.compile(r"(?:(?P<prefix>[^\s:]+)[ \t]+)?(?P<kind>env|file|caller):(?P<target>.*)", re.DOTALL)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VAULT_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_SECRET_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The parts of `<prefix> env:NAME`. `fault` says why it cannot be used, "" when it can."""

    prefix: str
    kind: str
    target: str
    fault: str = ""


def parse_reference(text: str) -> Reference | None:
    """The parts of a reference, or None for any other text."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        return None
    kind, target = match["kind"], match["target"]
    return Reference(prefix=match["prefix"] or "", kind=kind, target=target, fault=_fault(kind, target))


def _fault(kind: str, target: str) -> str:
    if kind == "env" and not _VARIABLE.fullmatch(target):
        return "what follows `env:` is not the name of a variable (letters, digits and _)"
    if kind == "file" and (not target.strip() or not target.isprintable()):
        return "what follows `file:` is not a path"
    if kind == "caller" and not _VAULT_NAME.fullmatch(target):
        return "what follows `caller:` is not a name in the vault (letters, digits, _ and -)"
    return ""


def is_callers(ref: SecretRef) -> bool:
    """Whether this is the credential of whoever calls."""
    reference = parse_reference(ref.reference)
    return reference is not None and reference.kind == "caller"


def reveal(ref: SecretRef, *, root: Path, vault: Callable[[str], SecretRef | None] | None = None) -> str:
    """The secret itself, with its prefix. Relative files lie under `root`; line ends at a file's end do not count.

    Args:
        vault: a name -> where the caller's own credential of this name lies, or None where it has none.
    Raises:
        NoCredentialError: the caller has no such credential.
        ConfigError: the variable or file is missing, empty or unreadable.
    """
    reference = parse_reference(ref.reference)
    if reference is None or reference.fault:
        raise ConfigError("this is not a reference to a secret", hint="write env:NAME or file:PATH")
    if reference.kind == "caller":
        secret = _from_vault(reference.target, root=root, vault=vault)
    elif reference.kind == "env":
        secret = _from_variable(reference.target)
    else:
        secret = _from_file(reference.target, root=root)
    if not reference.prefix:
        return secret
    if not secret.isprintable():
        # It becomes part of a header: a line break would begin another one, and HTTP libraries quote it in errors.
        raise ConfigError(
            "the secret holds line breaks or control characters, a header cannot",
            where=f"{reference.kind}:{reference.target}",
            hint="keep the bare token there, on one line",
        )
    return f"{reference.prefix} {secret}"


def _from_vault(name: str, *, root: Path, vault: Callable[[str], SecretRef | None] | None) -> str:
    entry = vault(name) if vault is not None else None
    if entry is None:
        hint = f'add a [[vault]] row with name = "{name}" for this caller (refresh = true for listing tools)'
        raise NoCredentialError(f"there is no credential {name!r} for whoever asks", where=f"caller:{name}", hint=hint)
    if is_callers(entry):
        raise ConfigError("a vault entry refers to the vault", where=f"caller:{name}", hint="env:NAME or file:PATH")
    return reveal(entry, root=root)


def _from_variable(name: str) -> str:
    secret = os.environ.get(name)
    if secret is None:
        raise ConfigError(
            f"the environment variable {name} is not set",
            where=f"env:{name}",
            hint=f"set it before you start toolcrib: export {name}=…",
        )
    if not secret.strip():
        raise ConfigError(
            f"the environment variable {name} is empty", where=f"env:{name}", hint="give it the secret's value"
        )
    return secret


def _from_file(target: str, *, root: Path) -> str:
    path, where = resolved(target, root=root), f"file:{target}"
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_SECRET_BYTES + 1)
    except OSError as fault:
        raise ConfigError(
            f"the file of a secret cannot be read: {fault.strerror}", where=where, hint=f"toolcrib looked at {path}"
        ) from fault
    if len(data) > _MAX_SECRET_BYTES:
        raise ConfigError("the file of a secret is larger than 1 MiB", where=where, hint="keep the bare secret there")
    secret = _decoded(data)
    if secret is None:
        raise ConfigError("the file of a secret is not UTF-8 text", where=where, hint="keep the bare secret there")
    if not secret.strip():
        raise ConfigError("the file of a secret is empty", where=where, hint="write the secret into it")
    return secret


def _decoded(data: bytes) -> str | None:
    """The text without line ends at its end, or None: the decoder's own error would carry the bytes on."""
    try:
        return data.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        return None
