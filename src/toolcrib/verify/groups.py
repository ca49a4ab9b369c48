"""Callers from a folder of profiles, and those of them who may discover the same tools.

Above: `isolation.py`, `parity.py`, `cli/verify.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from toolcrib.crib import Crib
from toolcrib.errors import ConfigError
from toolcrib.identity.callers import caller_from_file
from toolcrib.types import Caller, Channel
from toolcrib.verify.asking import Seat
from toolcrib.verify.scratch import PROFILES

_DRAWN_PER_GROUP = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Callers that may discover the same tools on every channel.

    Args:
        visible: tool ids that they may discover on some channel, or know of.
    """

    names: tuple[str, ...]
    visible: frozenset[str]


def seats_of(folder: Path, crib: Crib, names: Iterable[str]) -> dict[str, Seat]:
    """A seat for each of these caller files of a scratch folder."""
    where = crib.settings.crib
    return {
        name: Seat(
            folder=folder,
            crib=crib,
            caller=caller_from_file(
                folder / PROFILES / f"{name}.json", environment=where.environment, region=where.region
            ),
            profile=f"{PROFILES}/{name}.json",
        )
        for name in sorted(names)
    }


def groups_of(crib: Crib, seats: Mapping[str, Seat], *, max_groups: int, seed: int) -> list[Group]:
    """The callers grouped by what they may discover: of each group its first two, of many callers a sample.

    Args:
        max_groups: at most so many; 0 for all.
    """
    names = sorted(seats)
    if 0 < max_groups * _DRAWN_PER_GROUP < len(names):
        drawn = random.Random(seed).sample(names, max_groups * _DRAWN_PER_GROUP)  # noqa: S311 - not secrecy
        names = sorted(drawn)
    found: dict[frozenset[str], list[str]] = {}
    for name in names:
        found.setdefault(visible_to(crib, seats[name].caller), []).append(name)
    groups = [Group(names=tuple(names[:2]), visible=visible) for visible, names in found.items()]
    return groups[:max_groups] if max_groups else groups


def visible_to(crib: Crib, caller: Caller) -> frozenset[str]:
    """Ids of the tools that this caller may discover, or know of, retired ones included, on any channel."""
    pipeline = crib.pipeline()
    tools = pipeline.snapshot.tools
    retired: set[str] = set()
    seen = np.zeros(len(tools), dtype=np.bool_)
    for channel in Channel:
        view = crib.view(caller, channel)
        seen |= view.reach | view.disclosed  # what policy discloses and routing rules out is hidden, too
        retired |= pipeline.retired_known_to(caller, channel)
    return frozenset(tools[number].tool_id for number in np.flatnonzero(seen)) | retired


def profiles_in(folder: Path) -> dict[str, Path]:
    """The caller files of a folder: name without `.json` -> file, sorted.

    Raises:
        ConfigError: there are none.
    """
    found = {path.stem: path for path in sorted(folder.glob("*.json"))} if folder.is_dir() else {}
    if not found:
        raise ConfigError(
            "there are no caller profiles",
            where=str(folder),
            hint='write one JSON file per kind of caller there, e.g. {"subject": "ann", "roles": ["support"]}, '
            "or name another folder with --profiles DIR",
        )
    return found
