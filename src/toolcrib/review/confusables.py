"""Letters of other scripts that look like Latin ones, and how a word that mixes them reads.

Only words are judged: a word of one script is spelling, whatever its letters look like; a word in which Latin letters
stand beside lookalikes of another script is disguise. Units and symbols ("μs", "Δt") mix scripts honestly and are left
out of the table.

Source:
    Unicode Technical Standard 39 names the mechanism; this table is ours and holds only letters close in most fonts.
"""

from __future__ import annotations

import re

_PAIRS = (
    # Cyrillic
    "аa вb еe кk мm нh оo рp сc тt уy хx ѕs іi јj ԁd ԛq ԝw һh ӏl ѵv ғf ɡg ԍg ьb "
    "АA ВB ЕE КK МM НH ОO РP СC ТT УY ХX ЅS ІI ЈJ ԚQ ԜW ЗE ҮY ӀI Ԍg "
    # Greek
    "αa εe ιi κk νv οo ρp σo τt υu χx ϲc ϳj γy ηn ωw "
    "ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX ϹC "
    # Armenian
    "հh օo սu ցg ոn զq ѕs ԼL ՕO ՍU ՏS "
    # Cherokee
    "ᎪA ᏴB ᏟC ᎠD ᎬE ᎻH ᎫJ ᏦK ᏞL ᎷM ᏢP ᏒR ᏚS ᎢT ᏙV ᎳW ᏃZ ᎥI "
    # Latin letters made to look like others
    "ɑa ɡg ʟL ɴN ʀR ꜱS ᴀA ʙB ᴄC ᴅD ᴇE ꜰF ɢG ʜH ɪI ᴊJ ᴋK ᴍM ᴏO ᴘP ᴛT ᴜU ᴠV ᴡW ʏY ᴢZ ƖI ǃ! "
    # Other
    "ⲟo ⲣp ⲥc ߋo ໐o ०o ۵o ⵏI ꓐB ꓑP ꓓD ꓔT ꓖG ꓗK ꓙJ ꓚC ꓜZ ꓝF ꓟM ꓠN ꓡL ꓢS ꓣR ꓦV ꓧH ꓪW ꓫX ꓬY ꓮA ꓰE ꓲI ꓳO ꓴU"
)
LOOKALIKES = {pair[0]: pair[1] for pair in _PAIRS.split()}
_TABLE = str.maketrans(LOOKALIKES)
_WORD = re.compile(r"[^\W\d_]+")
_SMALL_CAPITALS = "ʟɴʀꜱᴀʙᴄᴅᴇꜰɢʜɪᴊᴋᴍᴏᴘᴛᴜᴠᴡʏᴢ"


def as_read(text: str) -> tuple[str, str]:
    """The text with disguised words spelled in Latin letters, and the first of those words ("" where there is none)."""
    if text.isascii():
        return text, ""
    mostly_latin = _mostly_latin(text)
    first = next((w for w in _WORD.findall(text) if _in_disguise(w, mostly_latin=mostly_latin)), "")
    return (_WORD.sub(_spelled, text), first) if first else (text, "")


def _spelled(match: re.Match[str]) -> str:
    """A word in Latin letters, if it can be one: where one word is in disguise, short ones are, too."""
    word = match[0]
    return word.translate(_TABLE) if all(c.isascii() or c in LOOKALIKES for c in word) else word


def _in_disguise(word: str, *, mostly_latin: bool) -> bool:
    """Whether this word mixes scripts, or stands among Latin words and is made of lookalikes alone."""
    alike = [c for c in word if c in LOOKALIKES]
    if not alike:
        return False
    plain = sum(c.isascii() for c in word)
    small = sum(c in _SMALL_CAPITALS for c in word)
    others = len(word) - plain - len(alike)
    if plain and len(word) >= 3 and not others:
        return True
    return not plain and not others and len(word) >= 4 and (mostly_latin or small == len(word))


def _mostly_latin(text: str) -> bool:
    letters = [c for c in text if c.isalpha()]
    return sum(c.isascii() for c in letters) * 5 > len(letters) * 4
