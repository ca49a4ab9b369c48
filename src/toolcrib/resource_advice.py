"""What cannot be meant in `[[resources]]`, told from the tools' schemas: a misspelt pointer asks no owner.

    rule ─▶ the tools under its glob: does any take the argument?
         └▶ its lookup tool: does it only read, take `lookup_argument` alone, and say where the tenant stands?

Floor 4. Above: `cli/keep.py` prints it after a refresh. Below: settings and a snapshot.

Invariants
1. A warning is no fault: schemas are the servers' and may leave out what is there.
2. A schema that is open to anything at a place (nothing declared, or further properties allowed in so many words) warns
   of nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

from toolcrib.gate.duplicates import may_write
from toolcrib.settings import Settings
from toolcrib.types import CatalogSnapshot, ResourceRule

_MAX_DEPTH = 100
_MAX_PLACES = 500
_SHOWN = 5
_BRANCHES = ("allOf", "anyOf", "oneOf")
_BRANCH = ("then", "else")


def resource_warnings(settings: Settings, snapshot: CatalogSnapshot) -> tuple[str, ...]:
    """A warning, with file and line, for each place in `[[resources]]` that no schema knows.

    Tools that wait for a reviewer are looked at, too; globs and ids that match nothing are `unmatched_rules`' to tell.
    """
    known: dict[str, Any] = {tool.tool_id: tool.definition for tool in snapshot.withheld}
    known |= {tool.tool_id: tool.definition for tool in snapshot.tools}
    writing = {tool.tool_id for tool in snapshot.tools if may_write(tool)}
    found: dict[str, str] = {}
    for number, rule in enumerate(settings.resources):
        where = settings.lines.where(("resources", number))
        writes = rule.lookup_tool in writing
        for line in (*_argument(rule, known), *_lookup(rule, known.get(rule.lookup_tool), writes=writes)):
            found.setdefault(line, where)  # many rules may share one lookup tool
    return tuple(f"{where}: [[resources]] {line}" for line, where in found.items())


def _argument(rule: ResourceRule, known: Mapping[str, Any]) -> Iterator[str]:
    """A call without the argument names no record: one that no tool takes switches the check off."""
    under = {tool_id: _schema(known[tool_id], "inputSchema") for tool_id in known if fnmatchcase(tool_id, rule.pattern)}
    taking = [tool_id for tool_id, schema in under.items() if _has(schema, rule.argument)]
    if not under or set(taking) - {rule.lookup_tool} or list(under) == taking:
        return
    which, then = "no tool", f"so no {rule.resource_type} is ever checked"
    if taking:  # a wide glob that holds the lookup tool, and names the record as that one does
        which, then = "only the lookup tool itself", f"so no other call is checked for its {rule.resource_type}"
    others = [schema for tool_id, schema in under.items() if tool_id not in taking]
    yield (
        f"argument `{rule.argument}`: {which} under `{rule.pattern}` takes it, {then}\n"
        f"  -> {_advice(rule.argument, others)}"
    )


def _lookup(rule: ResourceRule, definition: Any, *, writes: bool) -> Iterator[str]:
    """What makes a lookup tool useless: every call that names such a record is then refused."""
    if not rule.lookup_tool or definition is None:
        return
    tool_id = rule.lookup_tool
    if writes:
        yield f'{tool_id} is a lookup_tool and may write, so it is never asked\n  -> risk = "read", if it only reads'
    takes, gives = _schema(definition, "inputSchema"), _schema(definition, "outputSchema")
    place = "/" + rule.lookup_argument.replace("~", "~0").replace("/", "~1")
    if not _has(takes, place):
        yield f"lookup_argument: {tool_id} takes no `{rule.lookup_argument}`\n  -> {_advice(place, [takes])}"
    elif others := sorted(_required(takes) - {rule.lookup_argument}):
        yield f"{tool_id} wants {', '.join(others)} as well, and is asked with `{rule.lookup_argument}` alone"
    if not isinstance(gives, Mapping):
        yield (
            f"{tool_id} declares no outputSchema: its answer must be structuredContent all the same, or all is refused"
            "\n  -> in the Python SDK: declare the type that it returns"
        )
        return
    for key, pointer in (("tenant", rule.tenant), ("owner", rule.owner)):
        if pointer and not _has(gives, pointer):
            yield f"{key} `{pointer}`: {tool_id} declares no such place in its answer\n  -> {_advice(pointer, [gives])}"


def _schema(definition: Any, key: str) -> Any:
    return definition.get(key) if isinstance(definition, Mapping) else None


def _required(schema: Any) -> set[str]:
    required = schema.get("required") if isinstance(schema, Mapping) else None
    return {str(name) for name in required} if isinstance(required, list | tuple) else set()


def _advice(pointer: str, schemas: Sequence[Any]) -> str:
    named = (place for schema in schemas for place in _places(schema, root=schema, seen=set()))
    places = list(dict.fromkeys(islice(named, _MAX_PLACES)))
    by_name = {place.rsplit("/", 1)[-1].lower(): place for place in reversed(places)}
    name = pointer.rsplit("/", 1)[-1].lower()
    close = get_close_matches(pointer, places, n=1, cutoff=0.6) or [
        by_name[one] for one in get_close_matches(name, by_name, n=1, cutoff=0.6)
    ]
    if close:
        return f"did you mean {close[0]}?"
    more = f", and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    return f"there are: {', '.join(places[:_SHOWN])}{more}" if places else "nothing is declared there"


# --- one schema


def _has(schema: Any, pointer: str) -> bool:
    """Whether a value of this schema may have something at a JSON pointer."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    return _Search(schema).may_hold(schema, parts)


class _Search:
    """One search in one schema. Each part is looked at once for each rest of the pointer: schemas refer to themselves,
    and a hostile one branches without end."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._seen: set[tuple[int, int, bool]] = set()

    def may_hold(self, schema: Any, parts: Sequence[str], *, declared: bool = False, depth: int = 0) -> bool:
        """`declared`: a schema around this one, of the same value, names what there is."""
        if schema is False:
            return False
        if not isinstance(schema, Mapping) or not parts or depth > _MAX_DEPTH:
            return not (declared and parts)
        if (key := (id(schema), len(parts), declared)) in self._seen:
            return False
        self._seen.add(key)
        below = list(_below(schema, parts[0]))
        if any(self.may_hold(one, parts[1:], depth=depth + 1) for one in below):
            return True
        nested = _nested(schema, self._root)
        declared = declared or bool(below) or _says_what_it_holds(schema)
        if any(self.may_hold(one, parts, declared=declared, depth=depth + 1) for one in nested):
            return True
        return not nested and not declared


def _nested(schema: Mapping[str, Any], root: Any) -> list[Any]:
    """The schemas that speak of the same value. A reference that leads out of the document may be anything."""
    found = [one for key in _BRANCHES for one in _list(schema.get(key))]
    found += [schema[key] for key in _BRANCH if key in schema]
    for key in ("$ref", "$dynamicRef"):
        if isinstance(schema.get(key), str):
            found.append(_referred(schema[key], root))
    return found


def _referred(reference: str, root: Any) -> Any:
    if not reference.startswith("#"):
        return True
    value = root
    for part in reference[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(value, Mapping) or name not in value:
            return True
        value = value[name]
    return value


def _below(schema: Mapping[str, Any], name: str) -> Iterator[Any]:
    """The schemas of what stands under this name, or in this place of a list."""
    named = _mapping(schema.get("properties"))
    if name in named:
        yield named[name]
        return
    yield from (one for pattern, one in _mapping(schema.get("patternProperties")).items() if _matches(pattern, name))
    if schema.get("additionalProperties") not in (None, False):
        yield schema["additionalProperties"]
    if name.isascii() and name.isdigit():
        first = _list(schema.get("prefixItems"))
        if int(name) < len(first):
            yield first[int(name)]
        elif schema.get("items") not in (None, False):
            items = schema["items"]
            yield True if isinstance(items, list | tuple) else items


def _says_what_it_holds(schema: Mapping[str, Any]) -> bool:
    """Whether it names what there is, or says that the value holds nothing at all."""
    if any(key in schema for key in ("properties", "patternProperties", "items", "prefixItems", "enum", "const")):
        return True
    kinds = schema.get("type")
    kinds = {kinds} if isinstance(kinds, str) else set(_list(kinds))
    return schema.get("additionalProperties") is False or bool(kinds and not kinds & {"object", "array"})


def _places(schema: Any, *, root: Any, seen: set[int], begin: str = "") -> Iterator[str]:
    """The JSON pointers of all that a schema names, each part of it once."""
    if (
        not isinstance(schema, Mapping)
        or id(schema) in seen
        or len(seen) > _MAX_PLACES
        or begin.count("/") > _MAX_DEPTH
    ):
        return
    seen.add(id(schema))
    for name, one in _mapping(schema.get("properties")).items():
        place = f"{begin}/{str(name).replace('~', '~0').replace('/', '~1')}"
        yield place
        yield from _places(one, root=root, seen=seen, begin=place)
    yield from _places(schema.get("items"), root=root, seen=seen, begin=f"{begin}/0")
    for one in _nested(schema, root):
        yield from _places(one, root=root, seen=seen, begin=begin)


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return True


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
