"""What stands around a definition: its own server's tools, and every other server's.

The same words mean different things in different places: a tool that names its sibling explains itself, a tool that
gives orders about another server's tool reaches over. `Known` is made once for a catalog and shared; `Surroundings`
says from which server it is looked at.

Invariants
1. Making it and asking it cost time in proportion to the catalog, never to its square: names and texts meet in buckets.
2. Names are compared as read: case, separators, and letters that only look alike make no difference.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from toolcrib.review.normal import skeleton
from toolcrib.review.sketch import sketch, sketch_keys
from toolcrib.types import ListedTool

_MIN_CLONE_CHARS = 40
"""Shorter descriptions agree by chance."""
_WORDS = re.compile(r"\w+")
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_VERSIONS = frozenset("v new latest next updated fixed old copy alt 1 2 3 4".split())
_Key = TypeVar("_Key", bound="tuple[str, str] | tuple[str, tuple[str, ...]]")
_MAX_BUCKET = 64
"""A bucket with more than this holds boilerplate; later ones are not compared with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """One tool as others see it. `sketch`: a few hashes of its description's word pairs; empty for short texts."""

    server_id: str
    name: str
    sketch: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """One of several tools of a server with the same description."""

    name: str
    parameters: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The catalog, ready to be asked. Keys of `by_name` are skeletons; of `by_words`, parts of sketches."""

    by_server: Mapping[str, frozenset[str]] = field(default_factory=dict)
    by_name: Mapping[str, tuple[Neighbour, ...]] = field(default_factory=dict)
    by_words: Mapping[int, tuple[Neighbour, ...]] = field(default_factory=dict)
    by_version: Mapping[tuple[str, tuple[str, ...]], tuple[Twin, ...]] = field(default_factory=dict)
    """Server id and `name_words` -> the tools whose names differ in a version alone, where there are several."""
    by_text: Mapping[tuple[str, str], tuple[Twin, ...]] = field(default_factory=dict)
    """Server id and description as read -> the tools that have it, where there are several."""
    servers: Mapping[str, str] = field(default_factory=dict)
    """Skeleton of a server id -> the id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The catalog, seen from one server. `server_id` "" stands for a definition of no known server."""

    server_id: str = ""
    known: Known = field(default_factory=Known)

    @property
    def siblings(self) -> frozenset[str]:
        """The names of the server's own tools."""
        return self.known.by_server.get(self.server_id, frozenset())

    def elsewhere(self, name: str) -> tuple[Neighbour, ...]:
        """Other servers' tools whose name reads like this one."""
        return tuple(one for one in self.known.by_name.get(skeleton(name), ()) if one.server_id != self.server_id)

    def is_own(self, name: str) -> bool:
        """Whether one of the server's own tools reads like this."""
        return any(one.server_id == self.server_id for one in self.known.by_name.get(skeleton(name), ()))

    def same_text(self, description: str) -> tuple[Twin, ...]:
        """The server's own tools with this very description, sorted by name; none where it is nobody else's."""
        return self.known.by_text.get((self.server_id, _squeezed(description)), ())

    def versions(self, name: str) -> tuple[Twin, ...]:
        """The server's own tools whose names differ from this one in a version alone, itself among them."""
        return self.known.by_version.get((self.server_id, name_words(name)), ())

    def near(self, description: str) -> tuple[Neighbour, ...]:
        """Other servers' tools whose description shares much of this one's wording."""
        if len(description) < _MIN_CLONE_CHARS:
            return ()
        found = {
            (one.server_id, one.name): one
            for key in sketch_keys(sketch(description))
            for one in self.known.by_words.get(key, ())
            if one.server_id != self.server_id
        }
        return tuple(found[key] for key in sorted(found))


ALONE = Surroundings()
"""A definition with nothing known around it."""


def known(entries: Iterable[ListedTool]) -> Known:
    """The catalog made of these entries; malformed ones stand in it by their name only."""
    by_server: dict[str, set[str]] = defaultdict(set)
    by_name: dict[str, list[Neighbour]] = defaultdict(list)
    by_words: dict[int, list[Neighbour]] = defaultdict(list)
    by_text: dict[tuple[str, str], set[Twin]] = defaultdict(set)
    by_version: dict[tuple[str, tuple[str, ...]], set[Twin]] = defaultdict(set)
    for entry in entries:
        text = _description(entry.definition)
        marks = sketch(text) if len(text) >= _MIN_CLONE_CHARS else frozenset()
        one = Neighbour(server_id=entry.server_id, name=entry.name, sketch=marks)
        by_server[entry.server_id].add(entry.name)
        twin = Twin(name=entry.name, parameters=parameters_of(entry.definition))
        by_text[entry.server_id, _squeezed(text)].add(twin)
        by_version[entry.server_id, name_words(entry.name)].add(twin)
        by_name[skeleton(entry.name)].append(one)
        for key in sketch_keys(marks):
            if len(by_words[key]) < _MAX_BUCKET:
                by_words[key].append(one)
    return Known(
        by_server={server: frozenset(names) for server, names in by_server.items()},
        by_name={name: tuple(ones) for name, ones in by_name.items()},
        by_words={key: tuple(ones) for key, ones in by_words.items()},
        by_version=_several(by_version),
        by_text=_several(by_text),
        servers={skeleton(server): server for server in sorted(by_server)},
    )


def surroundings(entries: Iterable[ListedTool]) -> dict[str, Surroundings]:
    """Server id -> what stands around that server's tools."""
    catalog = known(entries)
    return {server: Surroundings(server_id=server, known=catalog) for server in catalog.by_server}


def _several(found: Mapping[_Key, set[Twin]]) -> dict[_Key, tuple[Twin, ...]]:
    """Those keys that hold more than one tool; their tools sorted by name."""
    return {
        key: tuple(sorted(twins, key=lambda twin: (twin.name, sorted(twin.parameters))))
        for key, twins in found.items()
        if key[1] and len(twins) > 1
    }


def name_words(name: str) -> tuple[str, ...]:
    """The words of a name in order, without what only tells versions of it apart."""
    words = (word.casefold() for word in _NAME_WORD.findall(name))
    return tuple(word for word in words if word not in _VERSIONS)


def parameters_of(definition: Any) -> frozenset[str]:
    """The names of a definition's parameters."""
    schema = definition.get("inputSchema") if isinstance(definition, Mapping) else None
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return frozenset(map(str, properties)) if isinstance(properties, Mapping) else frozenset()


def _squeezed(text: str) -> str:
    return " ".join(_WORDS.findall(text.casefold()))


def _description(definition: Any) -> str:
    text = definition.get("description") if isinstance(definition, Mapping) else None
    return text if isinstance(text, str) else ""
