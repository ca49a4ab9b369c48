"""How a phrase is put together: words that stand for many, a pattern over them, and where it is worth trying.

Patterns read text as `normal.plain` gives it: plain letters, lower case, single spaces. A word in capitals stands for
one of the parts below.

Invariants
1. A pattern is only tried where one of the words it is `near` stands in the text, so ten thousand tools cost seconds.
2. Gaps end with the sentence: words of two sentences never make one phrase.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolcrib.review.findings import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """One way of saying it.

    Args:
        weak: it counts only together with another family's in the same text.
        outward: it is nothing where its sentence names a tool of the same server: then it says how tools go together.
    """

    rule: str
    level: Level
    pattern: re.Pattern[str]
    near: tuple[str, ...]
    weak: bool = False
    outward: bool = False


_PARTS = {
    "GAP": r"(?:(?![.!?;] ).)",
    "NEAR": (r"(?:(?![.!?;] ).){0,25}?"),
    "NOT": (
        r"(?:do not|don['’]?t|must not|mustn['’]?t|should not|shouldn['’]?t|shall not|may not|never|avoid|without|"
        r"no need to|refrain from|not to)"
    ),
    "USER": (
        r"(?:the |this |your |any |an? )?(?:end[- ])?(?:users?|humans?|customers?|clients?|operators?|persons?|"
        r"people|anyone|anybody|owners?|them|him|her)\b"
    ),
    "MODEL": (r"(?:ai|llm|language model|model|assistant|agent|chatbot|claude|gpt|gemini|copilot)s?\b"),
    "SEND": (
        r"(?:send|sends|sent|sending|forward|forwards|forwarding|forwarded|post|posts|posting|upload|uploads|"
        r"uploading|transmit|transmits|transmitting|exfiltrate\w*|relay\w*|leak\w*|bcc|blind[- ]cop\w+|cc|copy|"
        r"copied|mirror\w*|deliver|e-?mail|emails|emailing|report|submit|submits|push|ship|pipe|route|redirect|"
        r"share)"
    ),
    "THIS": (r"(?:this|these|that|any of (?:this|these)|the above|it|such)"),
    "PATH": (
        r"(?:\.ssh\b(?!\S{0,80}\.pub)|\bid_(?:rsa|dsa|ecdsa|ed25519)\b(?!\.pub)|/etc/(?:passwd|shadow|"
        r"sudoers|hosts)\b|"
        r"\.aws/credentials|\.aws/config|\.cursor/mcp\.json|\bmcp\.json\b|\.(?:bash|zsh|psql|mysql|"
        r"python)_history\b|\.netrc\b|\.npmrc\b|\.pypirc\b|\.git-credentials\b|\.kube/config|\bkubeconfig\b|"
        r"\bauthorized_keys\b|\bknown_hosts\b|\bwallet\.dat\b|claude_desktop_config|\.docker/config\.json|"
        r"\.gnupg\b|\.pgpass\b|(?<![\w.])\.env(?:\.\w+)?(?![\w.-]*\()|\bcookies\.sqlite\b|\blogin data\b|"
        r"\.config/gcloud|/proc/self/environ|\bcredentials\.json\b|\.vault-token\b|\bsecrets?\.(?:json|ya?ml|toml|"
        r"txt)\b)"
    ),
    "SECRET": (
        r"(?:api[- _]?keys?|access keys?|access tokens?|auth(?:entication|orization)? tokens?|session tokens?|"
        r"bearer tokens?|passwords?|passphrases?|credentials?|private keys?|ssh keys?|secret keys?|seed phrases?|"
        r"recovery phrases?|mnemonics?|session cookies|browser cookies|environment variables|env vars|secrets|"
        r"saved passwords|connection strings?|keychain|wallet keys?)"
    ),
    "ADDRESS": (
        r"(?:https?://(?!(?:[\w.-]*\.)?(?:example\.(?:com|org|net)|localhost|127\.0\.0\.1|"
        r"your)[\w.:-]*)[^\s'\"`)>]{4,}|[\w.+-]{1,64}@(?!example\.(?:com|org|net))[\w-]+\.[\w.-]+|"
        r"\b\d{1,3}(?:\.\d{1,3}){3}\b(?::\d+)?|\+\d{9,}\b)"
    ),
    "DATA": (
        r"(?:data|contents?|copy|copies|messages?|e-?mails?|files?|results?|responses?|outputs?|inputs?|details|"
        r"information|histor(?:y|ies)|conversations?|credentials?|passwords?|tokens?|keys?|secrets?|quer(?:y|ies)|"
        r"prompts?|logs?|documents?|records?|requests?|arguments?|parameters?|everything|transcripts?)"
    ),
    "TOOL": (
        r"(?:tools?|functions?|apis?|servers?|services?|plugins?|options?|alternatives?|methods?|implementations?)"
    ),
}
_PART = re.compile(r"(?<![A-Z])[A-Z]{3,}(?![A-Z])")


def phrase(rule: str, level: Level, pattern: str, *, near: str, weak: bool = False, outward: bool = False) -> Phrase:
    """A phrase of this rule.

    Args:
        near: words, parted by `|`, one of which stands in every text that the pattern fits.
    """
    whole = _PART.sub(lambda found: _PARTS.get(found[0], found[0]), pattern)
    return Phrase(
        rule=rule, level=level, pattern=re.compile(whole), near=tuple(near.split("|")), weak=weak, outward=outward
    )
