"""What is searched of a tool: seven fields, each with a weight and a cap, and the text the dense model reads.

Stands on `tokenize`; read by `index`. A definition comes from a stranger: any shape JSON allows must pass
(`properties` as a list or a string, nesting without end, recursive `$ref`, null anywhere), and yields whatever text
can be read from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcrib.retrieval.text import clean
from toolcrib.retrieval.tokenize import document_terms, split_identifier
from toolcrib.types import Tool

MAX_FIELD_CHARS = 20_000
_MAX_ARGUMENTS = 200
_MAX_DEPTH = 4
_MAX_CHOICES = 20
_DENSE_ARGUMENTS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """`weight`: how much one occurrence counts. `max_terms`: how much of the field is read."""

    name: str
    weight: float
    max_terms: int


FIELDS = (
    Field(name="name", weight=3.0, max_terms=40),
    Field(name="server", weight=1.0, max_terms=20),
    Field(name="description", weight=1.0, max_terms=400),
    Field(name="arguments", weight=0.7, max_terms=150),
    Field(name="argument_texts", weight=0.3, max_terms=200),
    Field(name="keywords", weight=2.0, max_terms=60),
    Field(name="examples", weight=1.0, max_terms=200),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDocument:
    """`terms`: one list per field of `FIELDS`. `dense`: the text whose vector stands for the tool."""

    terms: tuple[list[str], ...]
    dense: str


def search_document(tool: Tool) -> SearchDocument:
    """The searchable text of a tool, from its own definition and its operator's metadata alone."""
    arguments = list(_arguments(tool.definition.get("inputSchema")))
    names = [name for name, _ in arguments]
    description = _described(tool.definition)
    texts = (
        tool.name,
        f"{tool.server_id} {tool.metadata.namespace}",
        description,
        " ".join(names),
        " ".join(text for _, text in arguments),
        " ".join((*tool.metadata.keywords, *(alias.partition(".")[2] for alias in tool.metadata.aliases))),
        "\n".join(tool.metadata.examples),
    )
    terms = tuple(
        document_terms(clean(text, max_chars=MAX_FIELD_CHARS), max_terms=field.max_terms)
        for field, text in zip(FIELDS, texts, strict=True)
    )
    own_words = " ".join((*tool.metadata.keywords, *tool.metadata.examples))
    dense = dense_text(server=tool.server_id, name=tool.name, description=description, arguments=names, extra=own_words)
    return SearchDocument(terms=terms, dense=dense)


def dense_text(*, server: str, name: str, description: str, arguments: Sequence[str], extra: str = "") -> str:
    """`server name: description Parameters: arguments`. Argument descriptions lower the quality of the vector."""
    text = f"{split_identifier(server)} {split_identifier(name)}: {description}"
    if arguments:
        text += " Parameters: " + ", ".join(split_identifier(a) for a in arguments[:_DENSE_ARGUMENTS])
    return clean(f"{text} {extra}" if extra else text, max_chars=MAX_FIELD_CHARS)


def argument_names(schema: Any) -> list[str]:
    """Names of the arguments a schema describes, nested ones included, in the schema's order."""
    return [name for name, _ in _arguments(schema)]


def _described(definition: Mapping[str, Any]) -> str:
    annotations = definition.get("annotations")
    titles = (definition.get("title"), annotations.get("title") if isinstance(annotations, Mapping) else None)
    title = next((t for t in titles if isinstance(t, str)), "")
    description = definition.get("description")
    return f"{title} {description}".strip() if isinstance(description, str) else title


def _arguments(schema: Any) -> Iterator[tuple[str, str]]:
    """(name, text) of each argument, at most `_MAX_ARGUMENTS`, breadth before depth."""
    queue: list[tuple[Any, int, frozenset[str]]] = [(schema, 0, frozenset())]
    n_found = 0
    for node, depth, followed in queue:
        if not isinstance(node, Mapping) or depth > _MAX_DEPTH or len(queue) > 4 * _MAX_ARGUMENTS:
            continue
        for name, child in _properties(node):
            yield name, _argument_text(child)
            n_found += 1
            if n_found >= _MAX_ARGUMENTS:
                return
            queue.append((child, depth + 1, followed))
        queue.extend((branch, depth + 1, followed) for branch in _branches(node))
        target = node.get("$ref")
        if isinstance(target, str) and target not in followed:
            queue.append((_local(schema, target), depth + 1, followed | {target}))


def _properties(node: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    properties = node.get("properties")
    if isinstance(properties, Mapping):
        yield from ((str(name), child) for name, child in properties.items())
    elif isinstance(properties, str):
        yield properties, None
    elif isinstance(properties, Sequence):
        for child in properties:
            if isinstance(child, Mapping):
                yield str(child.get("name") or ""), child
            elif isinstance(child, str):
                yield child, None


def _branches(node: Mapping[str, Any]) -> Iterator[Any]:
    for key in ("anyOf", "oneOf", "allOf"):
        branches = node.get(key)
        if isinstance(branches, list):
            yield from branches
    yield node.get("items")


def _argument_text(node: Any) -> str:
    if isinstance(node, str):
        return node
    if not isinstance(node, Mapping):
        return ""
    description, choices = node.get("description"), node.get("enum")
    words = [description] if isinstance(description, str) else []
    if isinstance(choices, list):
        words += [str(choice) for choice in choices[:_MAX_CHOICES] if isinstance(choice, (str, int))]
    return " ".join(words)


def _local(schema: Any, reference: str) -> Any:
    """The node a local `$ref` points to, or None. Nothing is ever fetched."""
    if not reference.startswith("#/"):
        return None
    node = schema
    for step in reference[2:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        node = node.get(key) if isinstance(node, Mapping) else None
    return node
