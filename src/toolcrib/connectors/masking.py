"""Keeps configured secrets out of text that leaves this room: a server may print its own token while it crashes, or
hand it back in an answer.

    fault texts (stderr, HTTP errors, JSON-RPC errors)     every header value and every word of a secret: `Masker()`
    results of calls                                       whole secrets in every form they travel in: `Masker.result()`

Above: `_session.py` and `mcp.py`. A result is the caller's data, so it is masked with more care than a fault: a word of
a passphrase, or a configured value that is no secret (`HOME`, `X-Region`), stays readable there.

Invariants
1. Masking comes before cutting, so that a cut can never leave half a secret.
2. What hides behind a `SecretRef` is always a secret; so is a value that came from a caller's vault. A literal header
   is one in faults when it is long enough, in results when its name says so: `X-Region: eu-central-1` is data there.
3. Forms: as it is, JSON-escaped (also twice), percent- and form-encoded, HTML-escaped, hexadecimal, and base64 in both
   alphabets at each of the three alignments, so that it is found inside a longer encoded text.
4. Base64 under `data` and `blob` is masked inside and encoded again; it stays base64.
5. Nothing but secrets is lost: names that become the same are numbered (`***`, `***2`). A whole number whose digits are
   a secret becomes the text `***`, of another type than its schema may ask for: the output check then says so, while
   any number put there instead would be taken for the server's.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus

from toolcrib.types import JsonObject, SecretRef, ServerSpec

MASK = "***"
_MIN_PART_CHARS = 6
"""Parts of a secret (a line of a key, the token after `Bearer`) shorter than this are words, not secrets."""
_MIN_LINE_CHARS = 16
"""Lines of a secret file shorter than this stay readable in results: braces, headings, `"type": "…"`."""
_MIN_CODED_CHARS = 8
"""A base64 form without its ragged ends may be short; below this it would be found by chance."""
_ORDINARY_VARIABLES = re.compile(
    r"env:(?:HOME|PATH|PWD|USER|USERNAME|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TERM|TMPDIR|TEMP|TMP|HOSTNAME|XDG_\w+"
    r"|APPDATA|LOCALAPPDATA|USERPROFILE|SYSTEMROOT|NODE_ENV|DISPLAY)"
)
"""References to what every process knows: no secrets, and found in half of all results."""
_SECRET_HEADER = re.compile(r"auth|key|secret|token|password|credential|cookie|session|signature", re.IGNORECASE)
_MAX_NUMBER_BITS = 256
_URL_SAFE = str.maketrans("-_", "+/")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)[ \t]+(\S+)")
_SECRET_NAME = re.compile(r"key|secret|token|password|credential", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Masker:
    """Replaces every known form of the secrets, longest first. Printing it shows none of them.

    Args:
        forms: for fault texts. whole: for results, without single words and values that are no secrets.
    """

    forms: tuple[str, ...] = field(default=(), repr=False)
    whole: tuple[str, ...] = field(default=(), repr=False)

    def __call__(self, text: str) -> str:
        return _replaced(text, self.forms)

    def result(self, raw: JsonObject) -> JsonObject:
        """A result object with the secrets masked in every text, name and encoded block; itself when it holds none."""
        if not self.whole:
            return raw
        try:
            masked = self._masked(raw) if self._may_hold_one(raw) else raw
        except RecursionError:
            return {}  # no list of content blocks: what cannot be read through is refused as no result at all
        return masked if isinstance(masked, Mapping) else {}

    def _may_hold_one(self, raw: JsonObject) -> bool:
        """Whether it is worth walking through: nearly no result is, and looking at it as one text takes a tenth."""
        text = json.dumps(raw, ensure_ascii=False)
        if '"data"' in text or '"blob"' in text:
            return True
        return any(json.dumps(form, ensure_ascii=False)[1:-1] in text for form in self.whole)

    def _masked(self, value: Any) -> Any:
        """The same JSON value, the very same object where nothing in it was masked."""
        if isinstance(value, str):
            return _replaced(value, self.whole)
        if isinstance(value, Mapping):
            names = self._names(list(value))
            new = {
                shown: self._under(str(name), inner) for shown, (name, inner) in zip(names, value.items(), strict=True)
            }
            same = all(a is b for a, b in zip(names, value, strict=True)) and all(
                a is b for a, b in zip(new.values(), value.values(), strict=True)
            )
            return value if same else new
        if isinstance(value, list):
            items = [self._masked(inner) for inner in value]
            return value if all(a is b for a, b in zip(items, value, strict=True)) else items
        return MASK if _digits(value) in self.whole else value

    def _names(self, names: list[Any]) -> list[Any]:
        """The names with the secrets in them masked, each still of its own. Those without one stay as they are."""
        masked = [_replaced(name, self.whole) if isinstance(name, str) else name for name in names]
        if all(a is b for a, b in zip(masked, names, strict=True)):
            return masked
        taken = {name for name, new in zip(names, masked, strict=True) if new is name}
        used: dict[str, int] = {}
        for place, new in enumerate(masked):
            if new is names[place]:
                continue
            shown = new
            while shown in taken:
                used[new] = used.get(new, 1) + 1
                shown = f"{new}{used[new]}"
            taken.add(shown)
            masked[place] = shown
        return masked

    def _under(self, name: str, value: Any) -> Any:
        if name not in ("data", "blob") or not isinstance(value, str):
            return self._masked(value)
        return self._masked(self._recoded(value))

    def _recoded(self, text: str) -> str:
        """Base64 with the secrets masked inside; the same text where it is no base64 or holds none."""
        try:
            plain = base64.b64decode(_padded(text))
        except (binascii.Error, ValueError):
            return text
        masked = plain
        for form in self.whole:
            masked = masked.replace(form.encode("utf-8", "surrogatepass"), MASK.encode())
        return text if masked == plain else base64.b64encode(masked).decode()


def _digits(value: Any) -> str:
    """A whole number as its digits, written with a point or without; "" for anything else, and for endless ones."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if type(value) is int and value.bit_length() < _MAX_NUMBER_BITS else ""


def _padded(text: str) -> str:
    """Base64 of either alphabet, with or without its line breaks and its padding, in the plain form."""
    joined = "".join(text.split()).translate(_URL_SAFE).rstrip("=")
    return joined + "=" * (-len(joined) % 4)


def masker_for(spec: ServerSpec, *, env: Mapping[str, str], headers: Mapping[str, str]) -> Masker:
    """A masker for the resolved values of one server's configuration."""
    secrets = tuple(_secrets(spec, env=env, headers=headers))
    whole = tuple(_whole_secrets(spec, env=env, headers=headers))
    return Masker(forms=_all_forms(secrets), whole=_sorted(form for secret in whole for form in _coded(secret)))


def _replaced(text: str, forms: tuple[str, ...]) -> str:
    """The text with every form masked, or the very same text. `forms`: longest first."""
    if not forms or len(text) < len(forms[-1]):
        return text  # most texts in a result are short
    for form in forms:
        if form in text:
            text = text.replace(form, MASK)
    return text


def _secrets(spec: ServerSpec, *, env: Mapping[str, str], headers: Mapping[str, str]) -> Iterator[str]:
    for name, value in env.items():
        if spec.env.get(name) != value:
            yield value
    for name, value in headers.items():
        if isinstance(spec.headers.get(name), SecretRef) or len(value) >= _MIN_PART_CHARS:
            yield value


def _whole_secrets(spec: ServerSpec, *, env: Mapping[str, str], headers: Mapping[str, str]) -> Iterator[str]:
    """What must not come back in a result: secrets and their parts that are secrets by themselves."""
    for name, value in env.items():
        known = spec.env.get(name)
        if known != value and not (isinstance(known, SecretRef) and _ORDINARY_VARIABLES.fullmatch(known.reference)):
            yield from _parts(value)
    for name, value in headers.items():
        if spec.headers.get(name) != value or _SECRET_HEADER.search(name):
            yield from _parts(value)


def _parts(secret: str) -> Iterator[str]:
    """The secret, its lines, the token after a scheme, what `Basic` encodes, and secrets inside a JSON document."""
    secret = secret.strip()
    found = [secret]
    if lines := secret.splitlines()[1:]:
        found += [line.strip() for line in (secret.splitlines()[0], *lines) if len(line.strip()) >= _MIN_LINE_CHARS]
    elif scheme := _SCHEME.fullmatch(secret):
        found.append(scheme[2])
        if scheme[1].lower() == "basic":
            found += _basic(scheme[2])
    if secret.startswith("{"):
        found += _named_secrets(secret)
    yield from (part for part in found if len(part) >= _MIN_PART_CHARS and not part.startswith("-----"))


def _basic(coded: str) -> list[str]:
    try:
        pair = base64.b64decode(coded, validate=True).decode()
    except (binascii.Error, ValueError):
        return []
    return [pair, pair.partition(":")[2]]


def _named_secrets(text: str) -> list[str]:
    """Values of a JSON document (a service account's file) under names of secrets; lines of a key inside it, too."""
    try:
        document = json.loads(text)
    except ValueError:
        return []
    if not isinstance(document, Mapping):
        return []
    named = [v for name, v in document.items() if isinstance(v, str) and _SECRET_NAME.search(name)]
    return [part for value in named for part in (value.strip(), *_long_lines(value)) if len(part) >= _MIN_LINE_CHARS]


def _long_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if not line.startswith("-----")]


def _all_forms(secrets: Iterable[str]) -> tuple[str, ...]:
    forms: set[str] = set()
    for secret in secrets:
        parts = [part for part in (*secret.splitlines(), *secret.split()) if len(part) >= _MIN_PART_CHARS]
        for form in (secret, secret.strip(), *parts):
            forms |= _coded(form)
    return _sorted(forms)


def _sorted(forms: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(forms) - {""}, key=lambda form: (-len(form), form)))


def _coded(secret: str) -> set[str]:
    """Every form that one secret travels in."""
    escaped = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    forms = {secret, *escaped}
    forms |= {form.replace("/", "\\/") for form in escaped} | {json.dumps(form)[1:-1] for form in escaped}
    data = secret.encode("utf-8", "surrogatepass")
    for percent in (quote(data, safe=""), quote(data, safe="/"), quote_plus(data)):
        forms |= {percent, re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), percent)}
    forms |= {html.escape(secret), html.escape(secret).replace("&#x27;", "&#39;"), html.escape(secret, quote=False)}
    if len(data) >= _MIN_PART_CHARS:
        forms |= {data.hex(), data.hex().upper(), *_base64(data)}
    return forms


def _base64(data: bytes) -> Iterator[str]:
    """Its base64, and what stays of that wherever it begins inside a longer text: without the characters it shares."""
    yield base64.b64encode(data).decode()
    yield base64.urlsafe_b64encode(data).decode()
    for offset in range(3):
        coded = base64.b64encode(bytes(offset) + data)
        begin = -(-offset * 8 // 6)
        end = (offset + len(data)) * 8 // 6
        core = coded[begin:end].decode()
        if len(core) >= _MIN_CODED_CHARS:
            yield core
            yield core.replace("+", "-").replace("/", "_")
