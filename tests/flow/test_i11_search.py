"""I11 with everything switched on: the same request has the same answer, to the last bit, whatever else differs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.flow import searched
from tests.flow.searched import CALIBRATION, KNOWN, OPEN, Setup, differing, in_order, secret, seen
from tests.flow.worlds import Worlds, tool
from toolcrib.retrieval.dense import bundled_embedder
from toolcrib.retrieval.index import Index

ROOT = Path(__file__).parents[2]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


def process(*words: str, seed: str, n_threads: str) -> str:
    """What a process prints, with another seed for hashes and another number of threads."""
    env = {**os.environ, "PYTHONHASHSEED": seed, **dict.fromkeys(THREADS, n_threads)}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Files that other processes read, and what Ann sees here."""

    large: Path
    other: Path
    learned: Path
    here: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    folder = tmp_path_factory.mktemp("kept")
    setup = Setup(calibration=CALIBRATION, learned=searched.learned())
    setup.learned.write(folder / "learned")
    searched.large_index().save(folder / "large.idx")
    others = in_order(
        (*KNOWN[3:], secret("zoo.feed_order", "Feed the order."), secret("attic.bind_book", "Bind books."))
    )
    Index.build(others, embedder=bundled_embedder()).save(folder / "other.idx")
    small = seen(Index.build(in_order(KNOWN), embedder=bundled_embedder()), setup)
    here = {"built": small, "updated": small, "large": seen(searched.large_index(), setup)}
    return Kept(large=folder / "large.idx", other=folder / "other.idx", learned=folder / "learned", here=here)


@pytest.mark.parametrize(("seed", "n_threads"), [("0", "1"), ("1", "2"), ("4242", "4")])
def test_i11_another_process_gives_the_same_bytes(kept: Kept, seed: str, n_threads: str) -> None:
    files = (str(kept.large), str(kept.other), str(kept.learned))
    there = json.loads(process("tests.flow.searched_child", *files, seed=seed, n_threads=n_threads))
    assert there.keys() == kept.here.keys()
    for name, told in kept.here.items():
        assert differing(told, there[name]) == [], name


def test_i11_an_index_gives_the_same_bytes_built_saved_loaded_and_brought_up_to_date(tmp_path: Path) -> None:
    model, setup = bundled_embedder(), Setup(calibration=CALIBRATION, learned=searched.learned())
    built = Index.build(in_order(KNOWN), embedder=model)
    told = seen(built, setup)
    built.save(tmp_path / "one.idx")
    loaded = Index.load(tmp_path / "one.idx", tools=built.tools, embedder=model)
    there_and_back = built.updated(in_order(KNOWN[4:]), embedder=model).updated(built.tools, embedder=model)
    for index in (built, loaded, there_and_back, loaded.updated(built.tools, embedder=model)):
        assert differing(seen(index, setup), told) == []


def test_i11_what_was_asked_before_changes_nothing() -> None:
    """Caches of views, terms and names hold no answer of their own."""
    setup = Setup(calibration=CALIBRATION, learned=searched.learned())
    index = Index.build(in_order(OPEN), embedder=bundled_embedder())
    forwards = seen(index, setup)
    backwards = seen(index, setup, searched.REQUESTS[::-1])
    assert differing(forwards, backwards) == []


def test_i11_the_command_line_gives_the_same_answer_in_every_process(make_world: Worlds) -> None:
    tools = [tool(one.name, one.definition["description"]) for one in OPEN]
    one = make_world({"shop": tools}, toml='[[tools]]\nmatch = "*"\nrisk = "read"\n')
    task = searched.REQUESTS[1].task

    def asked(seed: str, n_threads: str) -> dict[str, Any]:
        words = ("toolcrib.cli", "-C", str(one.folder), "select", "--json", "--", task)
        return {**json.loads(process(*words, seed=seed, n_threads=n_threads)), "trace_id": ""}

    here = {**one.crib.select(task).to_dict(), "trace_id": ""}
    assert asked("7", "1") == asked("8", "4") == json.loads(json.dumps(here))
