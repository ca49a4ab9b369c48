"""Arguments as they may stand in a lock: without secrets, and the same on every machine.

Invariants
1. Configured secrets are masked in every form; so is what stands under a name of a secret or looks like a token.
2. A path inside the crib is relative to it, one in the home directory begins with `~`, of another absolute path only
   the last name is kept: `…/data`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from toolcrib.connectors.masking import MASK

_NAME = (
    r"(?:api[-_]?key|access[-_]?key|key|secret|token|password|passwd|pwd|pat|credentials?|auth|authorization|cookie)"
)
_BEFORE = r"(?:[\w.-]*(?:[-_.]|(?-i:(?<=[a-z0-9])(?=[A-Z]))))?"
"""What comes before it in a longer name: `OPENAI_API_KEY`, `githubToken`; not `monkey`."""
_OPTION = r"(?:--?[\w.-]+=|-[a-z])?"
"""`--header=X-Api-Key: …`, `-eTOKEN=…`."""
_NAMED = re.compile(rf"(?is)({_OPTION}-{{0,2}}{_BEFORE}{_NAME}(?:[-_]id)?)(=|:\s*)(.+)")
_NAME_ALONE = re.compile(rf"(?i)--?{_BEFORE}{_NAME}")
_IN_ADDRESS = re.compile(r"(://)[^/\s@]+@")
_IN_LIST = re.compile(rf"(?i)([?&#;,:\s]{_BEFORE}{_NAME}=)[^&;\s]+")
"""Of an address (`?token=…`) or a connection (`host=…;password=…`)."""
_IN_JSON = re.compile(
    rf"""(?is)((\\*["']){_BEFORE}{_NAME}(?:[-_]id)?\2\s*:\s*)(?:\2(?:\\.|(?!\2)[^\\])*?\2|-?\d[\w.+-]*)"""
)
_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s+\S+")
_TOKEN = re.compile(
    r"\b(?:sk|pk|rk)[-_][\w-]{16,}|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxox[abeprs]-[\w-]{10,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*|\bhf_\w{20,}|\bnpm_\w{20,}"
)
_LONG_WORD = re.compile(r"(?<![\w+/=-])(?=(?:[A-Za-z+_=-]*\d){4})(?=[\d+_=-]*[A-Za-z])[A-Za-z0-9+_=-]{32,}(?![\w+/=-])")
_MAX_CHARS = 4_096
_PATH = re.compile(r"(?<![\w.~@/:\\-])(?:/|[A-Za-z]:[\\/])[^\s,;:\"'=@]*")


def shown(words: Sequence[str], *, mask: Callable[[str], str], root: Path) -> tuple[str, ...]:
    """The words as they may be kept.

    Args:
        mask: hides the configured secrets.
        root: the crib's directory.
    """
    kept: list[str] = []
    for place, word in enumerate(words):
        after_name = place > 0 and _NAME_ALONE.fullmatch(words[place - 1]) and not word.startswith("-")
        kept.append(MASK if after_name else _placeless(hidden(mask(word)), root))
    return tuple(kept)


def hidden(word: str) -> str:
    """The word without what looks like a secret; of a very long one only its length is kept."""
    if len(word) > _MAX_CHARS:
        return f"({len(word)} characters)"
    if named := _NAMED.fullmatch(word):
        return named[1] + named[2] + MASK
    for pattern, put in (
        (_IN_ADDRESS, rf"\1{MASK}@"),
        (_IN_LIST, rf"\1{MASK}"),
        (_IN_JSON, rf"\1\2{MASK}\2"),
        (_SCHEME, rf"\1 {MASK}"),
        (_TOKEN, MASK),
        (_LONG_WORD, MASK),
    ):
        word = pattern.sub(put, word)
    return word


def _placeless(word: str, root: Path) -> str:
    if "://" in word:
        return word.replace(root.as_uri(), "file://.") if word.startswith("file:") else word
    return _PATH.sub(lambda found: _place(found[0], root), word)


def _place(path: str, root: Path) -> str:
    if not path.strip("/\\") or path.startswith("//"):
        return path
    for base, said in ((root, "."), (Path.home(), "~")):
        for known in {str(base), str(base.resolve())} - {"/"}:
            rest = path.removeprefix(known)
            if rest != path and rest[:1] in ("", "/", "\\"):
                return said + rest.rstrip("/\\")
    return "…/" + re.split(r"[/\\]", path.rstrip("/\\"))[-1]
