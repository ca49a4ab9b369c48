"""Ways of saying what a definition has no business to say, family by family.

A tool's text describes the tool. What is looked for here speaks past it: to the model, about its other instructions,
about the person it works for, about secrets and other tools.

Above: `wording.py`, which asks these of every text. Beside this: `parts.py` says how a phrase is put together.
"""

from __future__ import annotations

from toolcrib.review.phrases.claims import CONSENT, PERSISTENCE, PREFERENCE, TAMPER
from toolcrib.review.phrases.orders import OVERRIDE, SECRECY
from toolcrib.review.phrases.parts import Phrase
from toolcrib.review.phrases.pretexts import PRETEXTS
from toolcrib.review.phrases.reach import ACCESS, COMMAND, HARVEST, SENDING

__all__ = ["PHRASES", "Phrase"]

_ALL = (
    *OVERRIDE,
    *SECRECY,
    *ACCESS,
    *SENDING,
    *HARVEST,
    *TAMPER,
    *PREFERENCE,
    *COMMAND,
    *PERSISTENCE,
    *CONSENT,
    *PRETEXTS,
)
PHRASES = tuple(sorted(_ALL, key=lambda one: (one.weak, -one.level.order)))
"""The gravest first: a rule speaks once of a text, at its gravest."""
