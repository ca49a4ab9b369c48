"""The house rules that a test can hold: import direction, and a floor 1 that needs nothing of ours."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import toolcrib

SRC = Path(toolcrib.__file__).parent
FLOORS = {
    "types": 1,
    "errors": 1,
    **dict.fromkeys(
        (
            "catalog",
            "review",
            "policy",
            "retrieval",
            "routing",
            "selection",
            "gate",
            "trace",
            "connectors",
            "providers",
            "identity",
            "store",
            "settings",
        ),
        2,
    ),
    "pipeline": 3,
    "offer": 4,
    "approvals": 4,
    "curation": 4,
    "review_desk": 4,
    "review_queue": 4,
    "locking": 4,
    "lock_completion": 4,
    "doctoring": 4,
    "intake": 4,
    "history": 4,
    "assembly": 4,
    "models": 4,
    "dispatch": 4,
    "owners": 4,
    "resource_advice": 4,
    "sending": 4,
    "callers": 4,
    "marks": 4,
    "in_force": 4,
    "recorded": 4,
    "candidate": 4,
    "everything": 4,
    "shadow": 4,
    "looking_back": 4,
    "learn": 4,
    "uses": 4,
    "calibrate": 4,
    "approval_desk": 4,
    "sessions": 4,
    "pace": 4,
    "refreshing": 4,
    "live": 4,
    "crib": 4,
    "policy_desk": 4,
    "policy_past": 4,
    "evals": 4,
    "": 4,  # the top __init__, which only lists public names
    "server": 5,
    "verify": 6,
    "cli": 7,
}
FLOOR_FOUR = {room for room, floor in FLOORS.items() if floor == 4}
MODULES = sorted(SRC.rglob("*.py"))


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            if node.module == "toolcrib":
                found |= {f"toolcrib.{alias.name}" for alias in node.names if not alias.name.startswith("__")}
            else:
                found.add(node.module)
    return {name for name in found if name.split(".")[0] == "toolcrib"}


@pytest.mark.parametrize("path", MODULES, ids=[str(p.relative_to(SRC)) for p in MODULES])
def test_imports_go_downward(path: Path) -> None:
    relative = path.relative_to(SRC).with_suffix("")
    room = "" if relative.name == "__init__" and len(relative.parts) == 1 else relative.parts[0]
    for name in imports_of(path):
        other = room_of(name)
        if other == room:
            continue
        assert other in FLOORS, f"{path.name} imports {name}, a room without a floor"
        same_floor_allowed = room in FLOOR_FOUR and other in FLOOR_FOUR
        assert FLOORS[other] < FLOORS[room] or same_floor_allowed, f"{path.name} (floor {FLOORS[room]}) imports {name}"


def test_no_relative_imports() -> None:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path} imports relatively"


def test_an_upward_import_would_be_noticed(tmp_path: Path) -> None:
    page = tmp_path / "x.py"
    page.write_text("from toolcrib import crib\nimport toolcrib.server.surface\n", encoding="utf-8")
    assert {room_of(name) for name in imports_of(page)} == {"crib", "server"}


def test_public_names_are_the_documented_ones() -> None:
    documented = (SRC.parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
    for name in toolcrib.__all__:
        assert f"`{name}`" in documented, f"docs/api.md does not mention {name}"
