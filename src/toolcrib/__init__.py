"""Policy-aware tool discovery, selection and routing for AI agents."""

from importlib.metadata import version

from toolcrib.crib import Crib
from toolcrib.errors import ToolcribError
from toolcrib.offer import CallOutcome, Offer
from toolcrib.types import Caller, CallerKind, Channel, Code, Outcome

__version__ = version("toolcrib")

__all__ = ["CallOutcome", "Caller", "CallerKind", "Channel", "Code", "Crib", "Offer", "Outcome", "ToolcribError"]
