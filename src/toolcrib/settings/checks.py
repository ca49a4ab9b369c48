"""What spans several keys: which transport has which keys, ids that stand twice, secrets in plain text.

Works on the raw document and takes anything it does not understand for somebody else's problem, so that these findings
come together with those of the models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from toolcrib.settings.faults import Problem
from toolcrib.settings.hosts import seems_local
from toolcrib.settings.issuers import issuer_problems
from toolcrib.settings.lines import KeyPath, Lines
from toolcrib.settings.plaintext import is_plain_secret, secret_in_url, secrets_in_arguments
from toolcrib.settings.references import parse_reference
from toolcrib.types import Transport

OWN_KEYS = {
    Transport.STDIO: ("command", "args", "env", "cwd"),
    Transport.HTTP: ("url", "headers"),
    Transport.FILE: ("path",),
}
"""Keys that only this transport has; the first one it needs."""
_EXAMPLES = {
    "command": 'command = ["uvx", "mcp-server-time"]',
    "url": 'url = "https://mcp.example.com/mcp"',
    "path": 'path = "tools.json"',
}

_MODEL_NEEDS = {"onnx": "path", "sentence-transformers": "path", "openai": "name"}
_MODEL_EXAMPLES = {"path": 'path = "models/my-model"', "name": 'name = "text-embedding-3-small"'}


def problems_in(document: Mapping[str, Any], *, lines: Lines) -> Iterator[Problem]:
    """Everything wrong between keys."""
    yield from _given_twice(document, "servers", "id", lines=lines)
    for number, row in _rows(document.get("servers")):
        yield from _transport_problems(row, ("servers", number))
        yield from _plain_secrets(row, ("servers", number))
    identity = document.get("identity")
    if isinstance(identity, Mapping):
        yield from _given_twice(identity, "tokens", "token", lines=lines, base=("identity",))
        for number, row in _rows(identity.get("jwt")):
            yield from _one_of(row, ("identity", "jwt", number), ("keys_url", "keys_file"), "[[identity.jwt]]")
        yield from issuer_problems(list(_rows(identity.get("jwt"))), lines=lines)
    for number, row in _rows(document.get("resources")):
        yield from _lookup_problems(row, ("resources", number))
    for number, row in _rows(document.get("vault")):
        yield from _vault_problems(row, ("vault", number))
    gate = document.get("gate")
    for number, row in _rows(gate.get("limits") if isinstance(gate, Mapping) else None):
        if not {"calls_per_minute", "concurrent"} & set(row):
            what, hint = "this [[gate.limits]] row limits nothing", "set calls_per_minute, concurrent, or both"
            yield Problem(path=("gate", "limits", number), what=what, hint=hint)
    routing = document.get("routing")
    yield from _in_two_groups(routing.get("equivalent") if isinstance(routing, Mapping) else None, lines=lines)
    yield from _model_problems(document.get("retrieval"))
    yield from _shadow_problems(document.get("shadow"))
    yield from _review_problems(document.get("review"), lines=lines)
    yield from _alias_problems(document.get("tools"), lines=lines)
    approvals = document.get("approvals")
    if isinstance(approvals, Mapping) and "webhook" in approvals and "webhook_secret" not in approvals:
        hint = 'requests to it are signed: webhook_secret = "env:NAME"'
        yield Problem(path=("approvals", "webhook"), what="`webhook` needs `webhook_secret`", hint=hint)


def _review_problems(review: Any, *, lines: Lines) -> Iterator[Problem]:
    """As many signers as an approval needs, each of them once."""
    if not isinstance(review, Mapping):
        return
    yield from _given_twice(review, "signers", "name", lines=lines, base=("review",))
    yield from _given_twice(review, "signers", "public_key", lines=lines, base=("review",))
    needed, there = review.get("require_signers", 0), len(list(_rows(review.get("signers"))))
    if isinstance(needed, int) and there < needed:
        what = f"`require_signers = {needed}`, and there are {there} [[review.signers]]: nothing could be approved"
        hint = "`toolcrib review key NAME` makes a key and prints the [[review.signers]] row for it"
        yield Problem(path=("review", "require_signers"), what=what, hint=hint)


def _alias_problems(tools: Any, *, lines: Lines) -> Iterator[Problem]:
    """An old name leads to one tool: rows with `aliases` name a tool id, and no alias stands twice."""
    first: dict[str, KeyPath] = {}
    for number, row in _rows(tools):
        aliases, match = row.get("aliases"), row.get("match")
        if not isinstance(aliases, list) or not isinstance(match, str):
            continue
        if any(character in match for character in "*?["):
            what = "`aliases` under a glob: an old name leads to one tool"
            yield Problem(path=("tools", number, "aliases"), what=what, hint="write the tool id in `match`")
        for place, alias in enumerate(aliases):
            path: KeyPath = ("tools", number, "aliases", place)
            if not isinstance(alias, str):
                continue
            if alias in first or alias == match:
                where = f", first at {lines.where(first[alias])}" if alias in first else ", and is its own"
                yield Problem(path=path, what=f"the alias {alias!r} stands twice{where}", hint="remove one of them")
            first.setdefault(alias, path)


def _model_problems(retrieval: Any) -> Iterator[Problem]:
    """A model of one's own is described where it is asked for, with what its kind needs."""
    if not isinstance(retrieval, Mapping):
        return
    model = retrieval.get("model")
    if retrieval.get("embedder") == "model" and model is None:
        hint = "describe it in [retrieval.model]"
        yield Problem(path=("retrieval", "embedder"), what='`embedder = "model"` needs [retrieval.model]', hint=hint)
    if isinstance(model, Mapping) and (needed := _MODEL_NEEDS.get(str(model.get("kind")))) and needed not in model:
        what = f"a model of kind `{model['kind']}` needs `{needed}`"
        yield Problem(path=("retrieval", "model"), what=what, hint=f"add {_MODEL_EXAMPLES[needed]}")


def _shadow_problems(shadow: Any) -> Iterator[Problem]:
    """Only where everything in reach is offered is there something to try without another file: the crib itself."""
    if isinstance(shadow, Mapping) and "candidate" not in shadow and shadow.get("present", "crib") == "crib":
        hint = 'candidate = "candidate.toml" names what is tried; with present = "all" it may be left out'
        yield Problem(path=("shadow",), what="[shadow] names no candidate", hint=hint)


def _in_two_groups(groups: Any, *, lines: Lines) -> Iterator[Problem]:
    """A tool that serves two capabilities would be compared in one and not in the other."""
    first: dict[str, KeyPath] = {}
    for number, row in _rows(groups):
        tools = row.get("tools")
        for place, tool_id in enumerate(tools if isinstance(tools, list) else ()):
            path: KeyPath = ("routing", "equivalent", number, "tools", place)
            if isinstance(tool_id, str) and tool_id in first:
                what = f"`{tool_id}` is equivalent to others twice, first at {lines.where(first[tool_id])}"
                yield Problem(path=path, what=what, hint="make one group of the two, or take it out of one")
            first.setdefault(str(tool_id), path)


def _one_of(row: Mapping[str, Any], base: KeyPath, keys: tuple[str, ...], table: str) -> Iterator[Problem]:
    given = [key for key in keys if key in row]
    if len(given) != 1:
        wanted = " or ".join(f"`{key}`" for key in keys)
        said = "both of" if given else "neither of"
        yield Problem(path=(*base, *given[1:]), what=f"{table} has {said} {wanted}", hint=f"give one: {wanted}")


def _lookup_problems(row: Mapping[str, Any], base: KeyPath) -> Iterator[Problem]:
    """A resource is looked up in one way, and the answer's places belong to a way that has an answer."""
    if "lookup_tool" in row and "url" in row:
        hint = "keep the one that knows the owner"
        yield Problem(path=(*base, "url"), what="[[resources]] has both `lookup_tool` and `url`", hint=hint)
    for key, needed in (("lookup_argument", "lookup_tool"), ("headers", "url")):
        if key in row and needed not in row:
            yield Problem(path=(*base, key), what=f"`{key}` belongs to `{needed}`", hint=f"add {needed}, or remove it")
    if row.keys() & {"lookup_tool", "url"} and "tenant" not in row and row.get("check") != "policy":
        what, hint = "[[resources]] does not say where the tenant stands in the answer", 'tenant = "/tenant"'
        yield Problem(path=base, what=what, hint=hint)
    headers = row.get("headers")
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        reference = parse_reference(value) if isinstance(value, str) else None
        if reference is not None and reference.kind == "caller":
            what = f"`{name}` in headers is a caller's own credential, and an owner is asked with the crib's"
            yield Problem(path=(*base, "headers", name), what=what, hint=f'{name} = "Bearer env:NAME", or "file:PATH"')
    yield from _plain_secrets(row, base)


def _vault_problems(row: Mapping[str, Any], base: KeyPath) -> Iterator[Problem]:
    if bool(row.get("refresh")) == ("subject" in row):
        what = "[[vault]] says neither or both of whose it is and that it is for refresh"
        yield Problem(path=base, what=what, hint="set subject (kind and tenant), or refresh = true")


def warnings_in(document: Mapping[str, Any], *, lines: Lines) -> Iterator[str]:
    """What may be meant but rarely is, each with file and line. Only for documents without problems."""
    for number, row in _rows(document.get("servers")):
        url, path = row.get("url"), ("servers", number, "url")
        if isinstance(url, str) and url.lower().startswith("http:") and not seems_local(urlsplit(url).hostname or ""):
            yield (
                f"{lines.where(path)}: server `{row['id']}` is reached over plain http: "
                "headers and arguments can be read on the way\n  -> use https"
            )
        yield from _unexpanded(row, ("servers", number), lines=lines)
    for number, row in _rows(document.get("tools")):
        if set(row) == {"match"}:
            where = lines.where(("tools", number))
            yield f"{where}: this [[tools]] row says nothing about its tools\n  -> set a key in it, or remove it"


def _unexpanded(row: Mapping[str, Any], base: KeyPath, *, lines: Lines) -> Iterator[str]:
    """Values that look as if something would be put in their place, where nothing will."""
    for key in ("command", "args"):
        words = row.get(key)
        for position, word in enumerate(words if isinstance(words, list) else ()):
            if parse_reference(word) is not None:
                where = lines.where((*base, key, position))
                yield f"{where}: an argument is handed over as written, not read as a reference\n  -> {_THROUGH_ENV}"
    for table in ("env", "headers"):
        for name, value in row.get(table, {}).items():
            if "${" in value:
                where = lines.where((*base, table, name))
                yield f'{where}: ${{…}} under `{name}` is handed over as written\n  -> write {name} = "env:NAME"'


def transport_of(row: Mapping[str, Any]) -> Transport | None:
    """The row's transport: as written, or the only one that its keys leave; None when neither tells."""
    written = row.get("transport")
    if written is not None:
        return next((transport for transport in Transport if transport == written), None)
    fitting = [transport for transport, (needed, *_) in OWN_KEYS.items() if needed in row]
    return fitting[0] if len(fitting) == 1 else None


def _transport_problems(row: Mapping[str, Any], base: KeyPath) -> Iterator[Problem]:
    transport = transport_of(row)
    if transport is None:
        if "transport" not in row:
            said = " and ".join(f"`{needed}`" for needed, *_ in OWN_KEYS.values() if needed in row)
            what = f"has {said}: which one counts?" if said else "does not say how to reach its server"
            yield Problem(
                path=base,
                what=f"[[servers]] {what}",
                hint='add transport = "stdio" (and command), "http" (url) or "file" (path)',
            )
        return
    needed, *_ = own = OWN_KEYS[transport]
    if needed not in row:
        yield Problem(
            path=base, what=f"[[servers]] with transport {transport} needs `{needed}`", hint=f"add {_EXAMPLES[needed]}"
        )
    for other, keys in OWN_KEYS.items():
        for key in keys:
            if key in row and key not in own:
                yield Problem(
                    path=(*base, key),
                    what=f"`{key}` does not belong to transport {transport}",
                    hint=f'remove it, or set transport = "{other}"',
                )


def _plain_secrets(row: Mapping[str, Any], base: KeyPath) -> Iterator[Problem]:
    for table in ("env", "headers"):
        values = row.get(table)
        for name, value in values.items() if isinstance(values, Mapping) else ():
            if isinstance(value, str) and is_plain_secret(name, value):
                yield Problem(
                    path=(*base, table, name),
                    what=f"`{name}` in {table} looks like a secret in plain text",
                    hint=f'keep it elsewhere and write {_reference_for(table, name, value)} or "file:PATH"',
                )
    for key in ("command", "args"):
        words = row.get(key)
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            for position, name in secrets_in_arguments(words):
                told = f" (`{name}`)" if name else ""
                yield Problem(
                    path=(*base, key, position),
                    what=f"an argument holds a secret in plain text{told}",
                    hint=_THROUGH_ENV,
                )
        elif key == "command" and isinstance(words, str) and any(secrets_in_arguments(words.split())):
            yield Problem(path=(*base, key), what="`command` holds a secret in plain text", hint=_THROUGH_ENV)
    url = row.get("url")
    place = secret_in_url(url) if isinstance(url, str) else ""
    if place and (place != "password" or base[0] == "servers"):  # elsewhere no address may have a user at all
        yield Problem(
            path=(*base, "url"),
            what=f"`url` holds a secret in plain text ({place})",
            hint='send it as a header: headers = { Authorization = "Bearer env:NAME" }',
        )


_THROUGH_ENV = (
    """hand it over in env; a program that only takes an argument: command = ["sh", "-c", 'exec program "$NAME"']"""
)


def _reference_for(table: str, name: str, value: str) -> str:
    scheme = value.split()[0] if table == "headers" and len(value.split()) == 2 else ""
    variable = "".join(char if char.isalnum() else "_" for char in name).upper()
    return f'{name} = "{scheme} env:NAME"' if scheme in ("Bearer", "Basic", "Token") else f'{name} = "env:{variable}"'


def _given_twice(
    parent: Mapping[str, Any], table: str, key: str, *, lines: Lines, base: KeyPath = ()
) -> Iterator[Problem]:
    first: dict[str, KeyPath] = {}
    for number, row in _rows(parent.get(table)):
        value, path = row.get(key), (*base, table, number, key)
        if not isinstance(value, str):
            continue
        if value in first:
            shown = f" `{value}`" if key == "id" else ""
            names = ".".join(str(part) for part in (*base, table))
            yield Problem(
                path=path,
                what=f"the {key}{shown} of [[{names}]] is used twice, first at {lines.where(first[value])}",
                hint="give each one its own",
            )
        first.setdefault(value, path)


def _rows(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The tables among the elements of a list, with their positions; nothing when it is none."""
    for number, row in enumerate(value if isinstance(value, list) else ()):
        if isinstance(row, Mapping):
            yield number, row
