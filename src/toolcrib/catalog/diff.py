"""What a refresh changed, by tool id."""

from __future__ import annotations

from dataclasses import dataclass

from toolcrib.types import ListedTool, Publication


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogDiff:
    """Tool ids, sorted. A failed server's tools appear nowhere here: nothing is known of them."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    n_unchanged: int


def diff(before: Publication | None, after: Publication) -> CatalogDiff:
    """Compare two publications entry by entry."""
    old, new = _by_id(before.tools if before else ()), _by_id(after.tools)
    return CatalogDiff(
        added=tuple(sorted(new.keys() - old.keys())),
        changed=tuple(sorted(t for t in new.keys() & old.keys() if new[t] != old[t])),
        removed=tuple(sorted(old.keys() - new.keys())),
        n_unchanged=sum(new[t] == old[t] for t in new.keys() & old.keys()),
    )


def _by_id(tools: tuple[ListedTool, ...]) -> dict[str, list[str]]:
    digests: dict[str, list[str]] = {}
    for tool in tools:
        digests.setdefault(f"{tool.server_id}.{tool.name}", []).append(tool.digest)
    return digests
