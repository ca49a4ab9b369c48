"""Does a tool's answer talk to the model? Labels for texts that look like injected instructions; nothing is changed.

Above: `output.py`, where the operator asks for it (`scan_results`). It is a signal for clients and traces, no defence:
who knows the rules words around them. What holds an attack is policy, approvals and the reviewed catalog.

Invariants
1. A label names a rule, never the text that matched.
2. Texts are compared as a model reads them: compatibility forms folded, characters that nobody sees taken out, lower
   case. Patterns begin with letters, not with `\b`: the search can then skip ahead.
3. The work is bounded by `MAX_CHARS` (about 0.25 ms for 1,000 characters); beyond it `not-read-whole` says so.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

MAX_CHARS: Final = 200_000
"""Of all texts of one result together."""

_ANYTHING = r"[^.!?\n]"
"""Within one sentence."""
_READER = (
    r"(?:the |this |your |our |any )?(?:end )?(?:users?|humans?|customers?|operators?|owner|anyone|anybody|person)"
)
_SPOKEN = {
    "ignore-previous": (
        r"(?:ignore|disregard|forget|override|do not follow|don't follow|stop following)\b"
        rf"{_ANYTHING}{{0,40}}?\b(?:previous|prior|above|earlier|preceding|system|original|your|existing)\b"
        rf"{_ANYTHING}{{0,30}}?\b(?:instructions?|prompts?|guidelines|directives|orders|constraints|guardrails)\b"
    ),
    "role-marker": (
        r"<\|?(?:im_start|im_end|system|endoftext|start_header_id|eot_id)\|>|\[/?inst\]|<</?sys>>"
        r"|</?system[-_ ]?(?:prompt|message)?>"
        r"|(?m:^[ \t>#*]*system(?: prompt| message| instructions?| override| note)?[ \t*]*:[ \t*]*"
        r"(?:you (?:are|must|will|should|have)\b|ignore\b|new\b|from now\b|important\b|disregard\b|the assistant\b))"
    ),
    "new-orders": (
        r"from now on,? (?:you|always|the assistant)\b|you are now (?:an?|in|the|acting|operating)\b"
        r"|(?:new|updated|revised|hidden|secret) (?:system )?instructions?"
        r"(?: for (?:you|the (?:ai|assistant|model|agent)))?[ ]?:"
        r"|(?:attention|important|note|message|instructions?)[ ,:]{1,2}(?:to|for) (?:the |any |all )?"
        r"(?:ai|llm|language model|assistant|agent)s?\b"
    ),
    "secrecy": (
        r"(?:do not|don't|never|must not|without)\s+(?:ever |directly |explicitly )?"
        r"(?:tell|telling|inform|informing|notify|notifying|alert|alerting|mention(?:ing)? (?:this|it|that) to"
        rf"|reveal(?:ing)? (?:this|it|that) to|disclos(?:e|ing) (?:this|it|that) to|let)\s+{_READER}\b"
        r"|(?:keep|hide) (?:this|it) (?:secret |hidden |a secret )?from " + _READER + r"\b"
    ),
    "tool-order": (
        r"(?:you must|you have to|you need to|immediately|now|next|always|first|then|please|and)\s+(?:also )?"
        r"(?:call|invoke|use|run|execute)\s+(?:the\s+)?[`'\"]?[a-z][a-z0-9]*(?:[_.\-][a-z0-9]+)+[`'\"]?\s+"
        r"(?:tool|function)\b"
        r"|(?:immediately|you must|silently|secretly)\s+(?:call|invoke|execute)\s+(?:the\s+)?[`'\"]?[a-z][a-z0-9]*"
        r"(?:_[a-z0-9]+)+\b"
    ),
    "send-out": (
        r"(?:send|forward|post|upload|exfiltrate|append|encode|include|email|transmit)\b"
        rf"{_ANYTHING}{{0,60}}?\b(?:conversation|chat history|system prompt|api[ _]?keys?|passwords?|credentials"
        rf"|secrets?|private keys?|ssh keys?|environment variables|\.env)\b[^\n]{{0,60}}?(?:https?://|\bto\s+\S+@\S+)"
    ),
    "url-template": (
        r"https?://[^\s)\"'>]{1,300}[?&][\w.\-]{1,40}=(?:\{\{?|\$\{|<|\[|%7b|%3c)[ ]?[\w ]{0,30}"
        r"(?:conversation|history|secret|password|credential|prompt|chat|summary|context|user_?data|stolen|env|contents?)"
    ),
    "image-beacon": (
        r"(?:!\[[^\]\n]{0,200}\]\(|<img\b[^>\n]{0,200}?\bsrc=[\"']?)https?://[^\s)\"'>]{1,300}[?&][\w.\-]{1,40}="
        r"(?:\{|\$\{|<|\[|%7b|%3c|[a-z0-9+/_\-]{100})"
    ),
}
_RULES = tuple((rule, re.compile(pattern)) for rule, pattern in _SPOKEN.items())

_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
)
_TAGS = "\U000e0000-\U000e007f"
_VARIANTS = "\U000e0100-\U000e01ef"
_SUBDIVISION_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,7}\U000e007f")
"""England, Scotland and Wales are written in tag characters."""
_HIDDEN = re.compile(
    f"[{_TAGS}]|[\u202d\u202e]|[\u200b-\u200d\u2060-\u2064\ufeff]{{4,}}|[\ufe00-\ufe0f{_VARIANTS}]{{4,}}"
)
"""Tag characters, forced direction, and runs that spell something out: one joiner or selector is ordinary writing."""
_UNSEEN = re.compile(f"[{_INVISIBLE}{_TAGS}{_VARIANTS}]")


def possible_instructions(texts: Iterable[str]) -> tuple[str, ...]:
    """The rules that some text matches, sorted, each once."""
    found: set[str] = set()
    left = MAX_CHARS
    for text in texts:
        if left <= 0:
            found.add("not-read-whole")
            break
        if len(text) > left:
            found.add("not-read-whole")
        found |= _matching(text[:left])
        left -= len(text)
    return tuple(sorted(found))


def _matching(text: str) -> set[str]:
    if text.isascii():
        return _spoken(text)
    hidden = {"hidden-characters"} if _HIDDEN.search(_SUBDIVISION_FLAG.sub("", text)) else set()
    seen = unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).replace("\u2019", "'")
    return hidden | _spoken(seen)


def _spoken(text: str) -> set[str]:
    lowered = text.lower()
    return {rule for rule, pattern in _RULES if pattern.search(lowered)}
