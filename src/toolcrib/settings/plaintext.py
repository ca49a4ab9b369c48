"""Does a configured value look like a secret in plain text?

Told from the key's name (`GITHUB_TOKEN`, `X-Api-Key`) or from a well-known shape of the value (`ghp_…`, a password in a
URL). Meant for values that a person typed into a configuration file: being wrong costs them one `env:` reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import parse_qsl, urlsplit

from toolcrib.settings.references import parse_reference

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRET_WORDS = frozenset(
    {"TOKEN", "KEY", "KEYS", "APIKEY", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE", "PWD"}
    | {"CREDENTIAL", "CREDENTIALS", "AUTHORIZATION", "AUTH", "BEARER", "COOKIE", "JWT", "PAT", "DSN"}
)
_SECRET_ENDINGS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY", "ACCESSKEY", "PRIVATEKEY", "SECRETKEY", "AUTHKEY")
_ABOUT_A_SECRET = frozenset(
    {"FILE", "PATH", "DIR", "DIRECTORY", "URL", "URI", "ENDPOINT", "HOST", "PORT", "NAME", "USER", "USERNAME", "TYPE"}
    | {"METHOD", "MODE", "SCHEME", "TTL", "TIMEOUT", "EXPIRY", "LIMIT", "BUDGET", "SIZE", "LENGTH", "COUNT", "REGION"}
    | {"ALGORITHM", "ALG", "ISSUER", "AUDIENCE", "SCOPE", "SCOPES", "ENABLED", "DISABLED", "REQUIRED", "VERSION"}
    | {"PREFIX", "PROVIDER", "STORE", "BACKEND", "SERVER"}
)
"""Last words that make a name say something about a secret (`TOKEN_URL`, `KEY_FILE`) instead of being one."""
_COUNTS_OR_SWITCHES = frozenset({"MAX", "MIN", "NUM", "USE", "ENABLE", "DISABLE", "REQUIRE", "SKIP", "NO"})
_ABOUT_A_SECRET_NAMES = frozenset({"GOOGLE_APPLICATION_CREDENTIALS"})
_HARMLESS_VALUES = frozenset(
    {"", "true", "false", "yes", "no", "on", "off", "none", "null", "0", "1", "basic", "bearer", "oauth", "oauth2"}
)
_SECRET_VALUE = re.compile(
    r"""
      \b sk-[A-Za-z0-9_-]{16,}                    # OpenAI, Anthropic and others
    | \b (?: sk | rk )_(?: live | test )_\w{10,}  # Stripe
    | \b (?: gh[pousr]_[A-Za-z0-9]{20,} | github_pat_\w{20,} | glpat-[\w-]{16,} )
    | \b xox[a-z]-[\w-]{10,} | hooks\.slack\.com/services/\w+
    | \b (?: AKIA | ASIA )[A-Z0-9]{16}\b          # AWS
    | \b AIza[\w-]{30,}                           # Google
    | \b (?: npm | hf )_[A-Za-z0-9]{20,}
    | \b eyJ[\w-]{10,}\.[\w-]{10,}                # a JWT
    | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY
    | ^(?: [Bb]earer | [Bb]asic )\s+[^\s$]{8,}
    | \b [A-Za-z][\w+.-]*://[^/\s:@]*:[^/\s@$]+@  # a password in a URL
    | \b (?i: password | pwd | accountkey | sharedaccesskey )\s*=\s*[^;\s$]+
    """,
    re.VERBOSE,
)
_PLACEHOLDER = re.compile(r"(?:\w+ )?\$\{(?:env:\w+|input:[\w.-]+|\w+)\}")
_NAMED = re.compile(r"-{0,2}(?P<name>[A-Za-z][\w.-]*)\s*[=:]\s*(?P<value>.+)", re.DOTALL)
_NAMED_IN_JSON = re.compile(r'\\?"(?P<name>[\w-]+)\\?"\s*:\s*\\?"(?P<value>[^"\\]+)')


def is_plain_secret(name: str, value: str) -> bool:
    """Whether this key holds a secret in plain text. References and placeholders such as `${NAME}` are none."""
    if parse_reference(value) is not None or _PLACEHOLDER.fullmatch(value):
        return False
    if value.strip().lower() in _HARMLESS_VALUES:
        return False
    return names_secret(name) or holds_secret(value)


def names_secret(name: str) -> bool:
    """Whether a key of this name usually holds a secret: one of its words says so, its first and last do not object."""
    words = [word.upper() for word in _WORDS.findall(name)]
    if not words or words[-1] in _ABOUT_A_SECRET or words[0] in _COUNTS_OR_SWITCHES:
        return False
    if name.upper() in _ABOUT_A_SECRET_NAMES:
        return False
    return any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in words)


def holds_secret(value: str) -> bool:
    """Whether the value has a shape that only secrets have."""
    return _SECRET_VALUE.search(value) is not None


def secrets_in_arguments(arguments: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Position and name of each argument that holds a secret; the name is "" where the value alone tells.

    Forms: `--api-key X`, `--token=X`, `-e KEY=X`, `--header "Authorization: X"`, `--config '{"apiKey": "X"}'`.
    """
    flag = ""
    for position, argument in enumerate(arguments):
        name = _secret_named_in(argument)
        if not name and flag and not argument.startswith("-") and is_plain_secret(flag, argument):
            name = flag
        if name or holds_secret(argument):
            yield position, name
        flag = argument.lstrip("-") if argument.startswith("-") and "=" not in argument else ""


def _secret_named_in(argument: str) -> str:
    for match in _NAMED_IN_JSON.finditer(argument):
        if is_plain_secret(match["name"], match["value"]):
            return match["name"]
    named = _NAMED.fullmatch(argument)
    if named is None:
        return ""
    return named["name"] if is_plain_secret(named["name"], named["value"]) else _secret_named_in(named["value"])


def secret_in_url(url: str) -> str:
    """Where in the URL a secret stands in plain text: `password`, the name of a query parameter, `path`, or ""."""
    try:
        parts = urlsplit(url)
        password, query = parts.password, parse_qsl(parts.query)
    except ValueError:
        return "value" if holds_secret(url) else ""
    if password and not password.startswith("$"):
        return "password"
    named = next((name for name, value in query if is_plain_secret(name, value)), "")
    return named or ("path" if holds_secret(url) else "")
