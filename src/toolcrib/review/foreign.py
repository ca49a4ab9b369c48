"""Where a definition speaks of tools that are not its own, and whether it gives orders about them.

    a name in the text ─▶ own tool? nothing
                       ─▶ another server's tool or server      with an order: block    without: info
                          that is an own parameter or value    with an order: review   without: nothing
                       ─▶ a tool nobody here lists             with an order: review   without: nothing

Above: `lint.py`. Below: `surroundings.py` knows whose a name is.

Invariants
1. A name that is a common word counts only where it is written as a name: in code quotes, or followed by "tool".
2. What the definition itself calls a parameter or a value is not a tool, unless another server lists one of that name:
   else a parameter would be a way to give orders about it.
3. Of a name that stands in several sentences the gravest counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

from toolcrib.review.findings import Finding, Level
from toolcrib.review.normal import skeleton, visible
from toolcrib.review.reading import Role, Text
from toolcrib.review.rules import RULES
from toolcrib.review.surroundings import Surroundings
from toolcrib.review.wording import snippet

_PROSE = (Role.DESCRIPTION, Role.PARAMETER, Role.TITLE, Role.VALUE, Role.INSTRUCTIONS, Role.OTHER, Role.META)
_SENTENCE = re.compile(r"[^.!?;\n]*(?:[.!?;](?!\s|$)[^.!?;\n]*)*[.!?;\n]*")
_QUOTED = re.compile(r"[`'\"“‘]([A-Za-z][\w.\-/:]{1,80})(?:\(\))?[`'\"”’]")
_JOINED = re.compile(
    r"(?<![\w/.$#@{<-])(?=[\w-]{3,128}(?![\w-]))[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)+(?![\w/]*[/=])"
)
"""Longer words are no names; trying each of their beginnings would take time in the square of their length."""
_FULL = re.compile(
    r"(?<![\w/.$#@{<-])(?P<server>[A-Za-z][\w-]{0,63}?)(?:__|[.:])(?P<tool>[A-Za-z][\w-]{0,127})(?![\w-]|/)"
)
_CAMEL = re.compile(r"(?<![\w/.$#@{<-])[a-z]+(?:[A-Z][a-z0-9]+)+(?![\w/=])")
_CALLED_TOOL = re.compile(
    r"\b(?P<before>[A-Za-z][\w-]{2,60})[`'\"]? (?:(?P<kind>MCP) )?(?:tool|function|server)s?\b|\b(?:tool|function|"
    r"server) "
    r"(?:named |called )?[`'\"]?(?P<after>[A-Za-z][\w-]*[_-][\w-]+)",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\b(?:must|always|never|first|before|instead|required|mandatory|do not|don['’]?t|should not|shouldn['’]?t|"
    r"only after|whenever|"
    r"every time|each time|immediately|ensure|make sure|have to|has to|rather than|not be used|avoid|replaces?|"
    r"supersedes?|"
    r"deprecated|obsolete|broken|insecure|unreliable|disabled|outdated|prior to|regardless|all (?:calls|emails|"
    r"messages|requests|transfers)|"
    r"when(?:ever)? (?:the )?(?:\w+ ){0,2}(?:used|using|called|calling|invoked|invoking)|automatically|unsafe)\b",
    re.IGNORECASE,
)
_VERBS = frozenset(
    "get list send create delete update read write search fetch add set remove find query run execute call make "
    "post put upload download "
    "check verify validate transfer pay book move copy open close start stop save load lookup resolve install "
    "deploy publish generate "
    "analyze convert process submit cancel edit modify insert drop show view export import sync schedule reply "
    "forward navigate click "
    "approve reject refund charge issue retrieve calculate compute log record track store select browse web file "
    "email bash shell".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Name:
    """A name as it stands in a sentence.

    Args:
        named: the sentence itself says that it is a tool or a server. full: a server and its tool, as models see it.
    """

    text: str
    start: int
    end: int
    named: bool = False
    full: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Own:
    """The definition's name and its parameters and values, each as it reads, and what its server is about."""

    name: str
    words: Set[str]
    topics: Set[str]


def foreign(read: Sequence[Text], around: Surroundings, *, name: str) -> Iterator[Finding]:
    """Findings about other tools that these texts name."""
    words = {skeleton(text.raw) for text in read if text.role in (Role.PARAMETER_NAME, Role.KEY)}
    words |= {skeleton(text.raw) for text in read if text.role is Role.VALUE and len(text.raw) < 80}
    own = _Own(name=skeleton(name), words=words, topics={*_topics(name), *_topics_of(around.siblings)})
    for text in read:
        if text.role in _PROSE and " " in text.raw:
            yield from _in_text(text, around, own)


def _source(text: Text) -> str:
    """The text to look for names in: as received, for case tells names apart; as read where letters were disguised."""
    read = text.plain
    disguise = read.disguised or read.entities or read.spaced or read.digits or read.encoded
    return read.text if disguise else visible(text.raw)


def _in_text(text: Text, around: Surroundings, own: _Own) -> Iterator[Finding]:
    """The gravest finding about each name."""
    gravest: dict[str, Finding] = {}
    for sentence in _sentences(_source(text)):
        ordered: bool | None = None
        for found in (*_full_names(sentence, around), *_names(sentence)):
            key = skeleton(found.text)
            if key == own.name or around.is_own(found.text) or not (found.full or _like_a_tool(sentence, found)):
                continue
            if ordered is None:
                ordered = bool(_ORDER.search(sentence))
            finding = _judged(text, sentence, found, _owners(found, around), ordered=ordered, own=own)
            if finding and (key not in gravest or finding.level.order > gravest[key].level.order):
                gravest[key] = finding
    yield from gravest.values()


def _sentences(source: str) -> Iterator[str]:
    for match in _SENTENCE.finditer(source):
        if len(match[0]) > 8:
            yield match[0]


def _full_names(sentence: str, around: Surroundings) -> Iterator[_Name]:
    """`server__tool`, `server.tool` and `server:tool` of other servers, whatever words stand around them."""
    for match in _FULL.finditer(sentence):
        server = around.known.servers.get(skeleton(match["server"]), around.server_id)
        if server != around.server_id and server in {one.server_id for one in around.elsewhere(match["tool"])}:
            yield _Name(text=match[0], start=match.start(), end=match.end(), full=True)


def _names(sentence: str) -> Iterator[_Name]:
    for match in _CALLED_TOOL.finditer(sentence):
        group = "before" if match["before"] else "after"
        if len(_parts(match[group])) > 1 or match["kind"]:
            yield _Name(text=match[group], start=match.start(group), end=match.end(group), named=True)
    for match in _QUOTED.finditer(sentence):
        yield _Name(text=match[1], start=match.start(1), end=match.end(1))
    for pattern in (_JOINED, _CAMEL):
        for match in pattern.finditer(sentence):
            if "_" in match[0] or pattern is _CAMEL:
                yield _Name(text=match[0], start=match.start(), end=match.end())


def _owners(found: _Name, around: Surroundings) -> tuple[str, ...]:
    """The other servers whose tool, or whose id, this is; at most the first three."""
    last = re.split(r"[.:/]|__", found.text)[-1]
    servers = {one.server_id for word in (found.text, last) for one in around.elsewhere(word)}
    server = around.known.servers.get(skeleton(found.text), "")
    if server and server != around.server_id:
        servers.add(server)
    return tuple(sorted(servers)[:3])


def _judged(
    text: Text, sentence: str, found: _Name, whose: tuple[str, ...], *, ordered: bool, own: _Own
) -> Finding | None:
    shown = snippet(sentence, found.start, found.end)
    is_word = skeleton(found.text) in own.words
    if whose and ordered:
        why = f"{RULES['foreign-tool-order'].title} ({found.text!r} of {', '.join(whose)})"
        level = Level.REVIEW if is_word else Level.BLOCK
        return Finding(rule="foreign-tool-order", level=level, pointer=text.pointer, evidence=shown, why=why)
    if is_word:
        return None
    if whose:
        why = f"{RULES['foreign-tool-mention'].title} ({found.text!r} of {', '.join(whose)})"
        return Finding(rule="foreign-tool-mention", level=Level.INFO, pointer=text.pointer, evidence=shown, why=why)
    if ordered and _may_be_a_tool(found):
        stale = not own.topics.isdisjoint(_topics(found.text))
        level = Level.REVIEW if not stale or _displaces(sentence, found) else Level.INFO
        why = RULES["unknown-tool-order"].title
        return Finding(rule="unknown-tool-order", level=level, pointer=text.pointer, evidence=shown, why=why)
    return None


_BEFORE_NAME = re.compile(
    r"\b(?:calls?|calling|called|uses?|using|used|invok(?:e|es|ing|ed)|runs?|running|execut(?:e|es|ing)|trigger\w*|"
    r"via|through|than|instead\s+of|in\s+place\s+of|over|before|after|prefer\w*|"
    r"tools?|functions?|avoid|replaces?|supersedes?|when|whenever)\s+(?:the\s+)?(?:tools?\s+|"
    r"functions?\s+)?[`'\"(]*$",
    re.IGNORECASE,
)
_AFTER_NAME = re.compile(r"^(?:\(\))?[`'\")]*\s*(?:\(\))?(?:tools?|functions?)\b|^\(\)", re.IGNORECASE)
_DISPLACED_BEFORE = re.compile(
    r"\b(?:this|me|mine)\b.{0,40}\b(?:instead of|rather than|in place of|replaces?|supersedes?)\s+(?:the\s+|"
    r"using\s+|calling\s+)*[`'\"(]*$|"
    r"\b(?:do not|don['’]t|never|stop|must not|should not)\s+(?:use|using|call|calling|invoke|"
    r"trust)\s+(?:the\s+)?[`'\"(]*$",
    re.IGNORECASE,
)
_DISPLACED_AFTER = re.compile(
    r"^[`'\")]*\s*(?:tool\s+|function\s+)?(?:is|are|was|has been|will be)\s+(?:now\s+|being\s+)?(?:deprecated|"
    r"broken|insecure|unreliable|"
    r"outdated|disabled|obsolete|retired|unsafe|compromised|replaced|superseded)",
    re.IGNORECASE,
)


def _displaces(sentence: str, found: _Name) -> bool:
    """Whether the sentence puts this tool in the other's place, or the other out of use."""
    before, after = sentence[max(0, found.start - 80) : found.start], sentence[found.end : found.end + 40]
    return bool(_DISPLACED_BEFORE.search(before) or _DISPLACED_AFTER.match(after))


_NOT_A_TOOL = re.compile(
    r"^[`'\")]*\s*(?:argument|param|field|option|prompt|column|property|format|value|flag|id\b|ids\b|key|variable|"
    r"env|setting|attribute|header|type|"
    r"error|status|object|array|string|list\b|command|cli|endpoint|table|file|event|and time|=|:|/)",
    re.IGNORECASE,
)


def _like_a_tool(sentence: str, found: _Name) -> bool:
    """Whether this word is written as a tool's name and stands where one would stand."""
    after = sentence[found.end : found.end + 24]
    if found.text.isupper() or _NOT_A_TOOL.match(after):
        return False
    if found.named or _AFTER_NAME.match(after):
        return True
    if len(_parts(found.text)) < 2:
        return False
    return bool(_BEFORE_NAME.search(sentence[max(0, found.start - 40) : found.start]))


def _may_be_a_tool(found: _Name) -> bool:
    """Whether a name that no server lists is put together as tools' names are: a verb first, no field's word last."""
    parts = _parts(found.text)
    separate = "_" in found.text or "-" in found.text or found.text[0].islower()
    return (
        separate
        and len(parts) > 1
        and parts[-1] not in _FIELD_ENDS
        and (parts[0] in _VERBS or (found.named and "_" in found.text))
    )


@lru_cache(maxsize=256)
def _topics_of(names: frozenset[str]) -> frozenset[str]:
    return frozenset(word for name in names for word in _topics(name))


def _topics(name: str) -> list[str]:
    """What a name is about: its words, without the verb and the common ones."""
    return [part for part in _parts(name) if part not in _VERBS and part not in _COMMON and len(part) > 2]


_FIELD_ENDS = frozenset(
    "id ids name names url urls uri key keys type types token path date time count size ref mode flag".split()
)
_COMMON = frozenset(
    "data tool tools all one info details detail by from with for the and mcp user users server api".split()
)


def _parts(name: str) -> list[str]:
    """The words a name is made of, in lower case."""
    return [part.casefold() for part in _PART.findall(name)] or [""]


_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
