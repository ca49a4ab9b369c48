"""Globs on tool ids, as `fnmatchcase` reads them: `*`, `?`, `[abc]`, `[!abc]`; case counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from fnmatch import translate

from toolcrib.settings.lines import KeyPath
from toolcrib.settings.model import Settings

_SPECIAL = re.compile(r"[*?\[]")


def glob_fault(pattern: str) -> str:
    """Why this cannot be meant as a glob on tool ids, or ""."""
    if not pattern.strip():
        return "it is empty"
    if pattern != pattern.strip() or not pattern.isprintable():
        return "it begins or ends with a space, or holds control characters"
    return "a [ is never closed" if _has_open_bracket(pattern) else ""


def _has_open_bracket(pattern: str) -> bool:
    """Whether a `[` has no `]`: `fnmatch` would silently take it for an ordinary character."""
    position = 0
    while (start := pattern.find("[", position)) >= 0:
        first = start + 1 + (pattern[start + 1 : start + 2] == "!")
        end = pattern.find("]", first + 1)  # a bracket in first place is a member of the set
        if end < 0:
            return True
        position = end + 1
    return False


def unmatched_rules(settings: Settings, tool_ids: Sequence[str]) -> tuple[str, ...]:
    """A warning, with file and line, for each glob that matches no tool, each named tool that does not exist, and
    each alias that is a tool's own id.

    Args:
        tool_ids: every tool that the servers list, in service or not.
    """
    known, ids = set(tool_ids), sorted(tool_ids)
    warnings = [
        f"{settings.lines.where(path)}: {table} `{pattern}` matches no tool\n  -> {_advice(pattern, ids)}"
        for path, table, pattern in _globs(settings)
        if not _matches_any(pattern, ids)
    ]
    warnings += [
        f"{settings.lines.where(path)}: `{tool_id}` in {key} does not exist\n  -> {_advice(tool_id, ids)}"
        for path, key, tool_id in _named(settings)
        if tool_id not in known
    ]
    warnings += [
        f"{settings.lines.where(path)}: the alias `{alias}` is a tool's own id; who may know of that tool reaches it\n"
        "  -> remove the alias, or the tool"
        for path, alias in _aliases(settings)
        if alias in known
    ]
    return tuple(warnings)


def _globs(settings: Settings) -> Iterator[tuple[KeyPath, str, str]]:
    for number, rule in enumerate(settings.tools):
        yield ("tools", number, "match"), "[[tools]] match", rule.pattern
    for number, pattern in enumerate(settings.fallback.tools):
        yield ("fallback", "tools", number), "[fallback] tools", pattern
    for number, resource in enumerate(settings.resources):
        yield ("resources", number, "tools"), "[[resources]] tools", resource.pattern


def _named(settings: Settings) -> Iterator[tuple[KeyPath, str, str]]:
    for number, rule in enumerate(settings.tools):
        if rule.fields.get("replaced_by"):
            yield ("tools", number, "replaced_by"), "[[tools]] replaced_by", rule.fields["replaced_by"]
    for number, resource in enumerate(settings.resources):
        if resource.lookup_tool:
            yield ("resources", number, "lookup_tool"), "[[resources]] lookup_tool", resource.lookup_tool
    for number, group in enumerate(settings.routing.rules.equivalent):
        for place, tool_id in enumerate(group):
            yield ("routing", "equivalent", number, "tools", place), "[[routing.equivalent]] tools", tool_id


def _aliases(settings: Settings) -> Iterator[tuple[KeyPath, str]]:
    for number, rule in enumerate(settings.tools):
        for place, alias in enumerate(rule.fields.get("aliases", ())):
            yield ("tools", number, "aliases", place), alias


def _matches_any(pattern: str, ids: Sequence[str]) -> bool:
    if not _SPECIAL.search(pattern):
        return pattern in ids
    matches = re.compile(translate(pattern)).match
    return any(matches(tool_id) for tool_id in ids)


def _advice(pattern: str, ids: Sequence[str]) -> str:
    servers = {tool_id.split(".", 1)[0] for tool_id in ids}
    if pattern in servers:
        return f"a tool id is <server id>.<tool name>: write {pattern}.*"
    if "{" in pattern:
        return "braces have no meaning in these globs: write one row for each"
    lower = pattern.lower()
    if not _SPECIAL.search(pattern):
        close = get_close_matches(lower, [tool_id.lower() for tool_id in ids], n=1, cutoff=0.7)
        return f"did you mean {next(i for i in ids if i.lower() == close[0])}?" if close else _LIST
    if _matches_any(lower, [tool_id.lower() for tool_id in ids]):
        return "upper and lower case count: some tool ids differ from this in nothing else"
    server = pattern.split(".", 1)[0]
    if "." in pattern and not _SPECIAL.search(server) and server not in servers:
        close = get_close_matches(server, sorted(servers), n=1, cutoff=0.6)
        return f"no server listed tools under {server!r}" + (f"; did you mean {close[0]}?" if close else "")
    return _LIST


_LIST = "`toolcrib tools` and `toolcrib review` list the tool ids; mend the glob or remove the row"
