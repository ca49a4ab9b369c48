"""Does a configured value look like a secret in plain text?

Told from the key's name (`GITHUB_TOKEN`, `X-Api-Key`) or from a well-known shape of the value (`ghp_…`, a password inside
a URL). Meant for values that a person typed into a configuration file: being wrong costs them one `env:` reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import parse_qsl, urlsplit

from toolcrib.settings.references import parse_reference

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRET_WORDS = frozenset(
    "TOKEN KEY KEYS SECRET SECRETS PASSWORD PASSWORDS PASSWD PASSPHRASE PWD CREDENTIAL CREDENTIALS AUTHORIZATION AUTH "
    "APIKEY BEARER COOKIE JWT PAT".split()
)
_SECRET_ENDINGS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY", "ACCESSKEY", "PRIVATEKEY", "SECRETKEY", "AUTHKEY")
_ABOUT_A_SECRET = frozenset(
    "FILE PATH DIR DIRECTORY URL URI ENDPOINT HOST PORT NAME USER USERNAME TYPE METHOD MODE SCHEME TTL TIMEOUT EXPIRY "
    "LIMIT BUDGET SIZE LENGTH COUNT ALGORITHM ALG ISSUER AUDIENCE SCOPE SCOPES ENABLED DISABLED REQUIRED VERSION PREFIX "
    "REGION PROVIDER STORE BACKEND SERVER".split()
)
"""Last words that make a name say something about a secret (`TOKEN_URL`, `KEY_FILE`) instead of being one."""
_ABOUT_A_SECRET_NAMES = frozenset({"GOOGLE_APPLICATION_CREDENTIALS"})
_HARMLESS_VALUES = frozenset(
    {"", "true", "false", "yes", "no", "on", "off", "none", "null", "0", "1", "basic", "bearer", "oauth", "oauth2"}
)
_SECRET_VALUE = re.compile(
    r"""
      \b sk-[A-Za-z0-9_-]{16,}                     | \b gh[pousr]_[A-Za-z0-9]{20,}   | \b github_pat_\w{20,}
    | \b glpat-[\w-]{16,}                          | \b xox[a-z]-[\w-]{10,}          | \b (?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \b AIza[\w-]{30,}                            | \b eyJ[\w-]{10,}\.[\w-]{10,}    | \b (?:npm|hf)_[A-Za-z0-9]{20,}
    | -----BEGIN [A-Z ]*PRIVATE KEY                | ^(?:[Bb]earer|[Bb]asic)\s+[^\s$]{8,}
    | \b [A-Za-z][\w+.-]*://[^/\s:@]*:[^/\s@$]+@   | (?i:\b(?:password|pwd|accountkey|sharedaccesskey)\s*=\s*[^;\s$]+)
    """.replace("BEGIN [A-Z ]*PRIVATE KEY", r"BEGIN\ [A-Z\ ]*PRIVATE\ KEY"),
    re.VERBOSE,
)
_NAMED_ARGUMENT = re.compile(r"-{0,2}(?P<name>[A-Za-z][\w.-]*)\s*[=:]\s*(?P<value>.+)", re.DOTALL)
_PLACEHOLDER = re.compile(r"(?:\w+ )?\$(?:\w+|\{[^{}]*\})")


def is_plain_secret(name: str, value: str) -> bool:
    """Whether this key holds a secret in plain text. References and placeholders such as `${NAME}` are none."""
    if parse_reference(value) is not None or _PLACEHOLDER.fullmatch(value):
        return False
    if value.strip().lower() in _HARMLESS_VALUES:
        return False
    return names_secret(name) or holds_secret(value)


def names_secret(name: str) -> bool:
    """Whether a key of this name usually holds a secret: one of its words says so and its last word does not object."""
    words = [word.upper() for word in _WORDS.findall(name)]
    if not words or words[-1] in _ABOUT_A_SECRET or name.upper() in _ABOUT_A_SECRET_NAMES:
        return False
    return any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in words)


def holds_secret(value: str) -> bool:
    """Whether the value has a shape that only secrets have."""
    return _SECRET_VALUE.search(value) is not None


def secrets_in_arguments(arguments: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Position and name of each argument that holds a secret: `--api-key X`, `--token=X`, `-e KEY=X`, `Authorization: X`."""
    flag = ""
    for position, argument in enumerate(arguments):
        named = _NAMED_ARGUMENT.fullmatch(argument)
        if named and "://" not in argument.split(named["value"])[0] and is_plain_secret(named["name"], named["value"]):
            yield position, named["name"]
        elif flag and not argument.startswith("-") and is_plain_secret(flag, argument):
            yield position, flag
        elif holds_secret(argument):
            yield position, ""
        flag = argument.lstrip("-") if argument.startswith("-") and "=" not in argument else ""


def secret_in_url(url: str) -> str:
    """Where in the URL a secret stands in plain text: `password`, the name of a query parameter, or ""."""
    try:
        parts = urlsplit(url)
        password, query = parts.password, parse_qsl(parts.query)
    except ValueError:
        return "value" if holds_secret(url) else ""
    if password and not password.startswith("$"):
        return "password"
    named = next((name for name, value in query if is_plain_secret(name, value)), "")
    return named or ("path" if holds_secret(url) else "")
