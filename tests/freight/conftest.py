"""The example lies outside the package: its folder is put on the path, and its scripts are loaded by their path."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "freight"
sys.path.insert(0, str(EXAMPLE))


def load(name: str) -> ModuleType:
    """A script of the example, under a name that collides with nothing."""
    spec = importlib.util.spec_from_file_location(f"freight_example_{name}", EXAMPLE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def server_module() -> ModuleType:
    return load("server")


@pytest.fixture(scope="session")
def run_module() -> ModuleType:
    return load("run")


@pytest.fixture(scope="session")
def six_cases() -> ModuleType:
    return load("six_cases")
