"""The fixture that makes small cribs and closes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flow.worlds import World, Worlds


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Worlds]:
    """Makes cribs, each in a folder of its own: servers by id, and what `World` takes."""
    made: list[World] = []

    def make(servers: Any, **more: Any) -> World:
        made.append(World(tmp_path / str(len(made)), servers, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()
