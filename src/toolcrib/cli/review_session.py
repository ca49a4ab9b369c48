"""Reviewing at a terminal: one server or one definition at a time, one key for each decision.

    new server ─▶ a: all without findings, then the rest ┐
                  o: one by one ─────────────────────────┼─▶ definition ─▶ a, r, s ─▶ the next
                  s: none of it                          ┘
    changed server ─▶ a: it is approved as it is now

Above: `review.py`, when both ends are a terminal. Below: `review_pages.py` has the lines, `review_desk.py` decides.

Invariants
1. A key decides about what stands on the screen: by its digest, so that whatever came in since is not decided. That
   goes for a new server as well, which is pinned with its first tool.
2. What is grave (`ReviewItem.grave`) is approved only with a reason.
3. Ending early keeps what was decided, and decides nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import typer

from toolcrib.cli.review_pages import server_page, tool_page, whole, whole_beside
from toolcrib.cli.shared import counted
from toolcrib.errors import ToolNotFoundError
from toolcrib.review.signers import Signing
from toolcrib.review.text import show
from toolcrib.review_desk import ReviewDesk
from toolcrib.review_queue import ReviewItem, ReviewQueue, ServerReview

_TOOL_KEYS = {"a": "approve", "r": "reject", "s": "skip", "w": "show the whole", "?": "help", "q": "quit"}
_NEW_SERVER_KEYS = {
    "a": "approve all without findings, then look at the rest",
    "o": "one by one",
    "s": "skip this server",
    "w": "show every tool",
    "?": "help",
    "q": "quit",
}
_SERVER_KEYS = {"a": "approve what it is now", "s": "skip", "w": "show the whole", "?": "help", "q": "quit"}
_ALL = 1_000_000
_ENDS = ("\x03", "\x04", "")


class Quit(Exception):  # noqa: N818 (no fault: somebody is done)
    """Whoever reviews has had enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """Both ends of it.

    Args:
        key: the next key, waited for; "" when there will be none. ask: a line, for a question; raises `Quit` where
            somebody leaves instead.
    """

    key: Callable[[], str]
    ask: Callable[[str], str]
    out: Callable[[str], None]


def real_terminal() -> Terminal:
    """The one that the process runs in."""

    def key() -> str:
        try:
            return typer.getchar()
        except (EOFError, KeyboardInterrupt):
            return ""

    def ask(question: str) -> str:
        try:
            return str(typer.prompt(question, default="", show_default=False))
        except typer.Abort:
            raise Quit from None

    return Terminal(key=key, ask=ask, out=typer.echo)


@dataclass(slots=True, kw_only=True)
class ReviewSession:
    """One sitting."""

    desk: ReviewDesk
    terminal: Terminal
    reviewer: str
    signer: Signing | None = None
    _done: Counter[str] = field(default_factory=Counter)
    _new: dict[str, str] = field(default_factory=dict)
    """New server -> digest of what it is, as shown."""

    def run(self, queue: ReviewQueue) -> None:
        """Go through what waits until it is through, or somebody quits."""
        items = [item for item in queue.items if item.waits and self._can_be_decided(item)]
        servers = [server for server in queue.servers if self._is_asked_about(server)]
        try:
            for server in servers:
                theirs = [item for item in items if item.tool.server_id == server.server_id]
                if server.kind == "first":
                    items = [item for item in items if item.tool.server_id != server.server_id]
                    self._new_server(server, theirs)
                else:
                    self._changed_server(server)
            self._one_by_one(items)
        except Quit:
            self.terminal.out("")
        self.terminal.out(self._summary(queue))

    def _can_be_decided(self, item: ReviewItem) -> bool:
        """An approval that lacks signatures waits for another signer, not for whoever has signed or cannot sign."""
        return item.tool.code != "unsigned" or (self.signer is not None and self.signer.name not in item.signed_by)

    def _is_asked_about(self, server: ServerReview) -> bool:
        if server.kind == "first":
            return server.n_waiting > 0
        return server.kind != "unsigned" or self.signer is not None

    def _new_server(self, server: ServerReview, theirs: Sequence[ReviewItem]) -> None:
        self._new[server.server_id] = server.digest
        quiet = [item for item in theirs if item.is_plain]
        self._print([*server_page(server), f"  without findings: {len(quiet)} of {len(theirs)}"])
        chosen = self._choose(_NEW_SERVER_KEYS, whole=[line for item in theirs for line in [*tool_page(item), ""]])
        if chosen == "s":
            self._done["skipped"] += len(theirs)
            return
        if chosen == "a" and quiet:
            self._approve(quiet)
            theirs = [item for item in theirs if not item.is_plain]
        self._one_by_one(theirs)

    def _changed_server(self, server: ServerReview) -> None:
        self._print(server_page(server))
        if self._choose(_SERVER_KEYS, whole=[show(server.status.instructions)]) != "a":
            return
        try:
            done = self.desk.approve_server(
                server.server_id, digest=server.digest, reviewer=self.reviewer, signer=self.signer
            )
        except ToolNotFoundError as fault:
            self.terminal.out(show(str(fault)))
            return
        self.terminal.out(f"server {server.server_id} is {'approved' if done else 'approved and signed already'}")

    def _one_by_one(self, items: Sequence[ReviewItem]) -> None:
        for place, item in enumerate(items, start=1):
            first, *rest = tool_page(item)
            self._print([f"[{place}/{len(items)}] {first}", *rest])
            definition = item.tool.definition
            beside = whole(definition) if item.was is None else whole_beside(item.was, definition, around=_ALL)
            while (chosen := self._choose(_TOOL_KEYS, whole=beside)) == "a" and not self._approve_one(item):
                continue
            if chosen == "r":
                self._reject(item)
            elif chosen == "s":
                self._done["skipped"] += 1

    def _approve_one(self, item: ReviewItem) -> bool:
        """False where a reason was asked for and none was given."""
        reason = ""
        if item.grave:
            reason = self.terminal.ask(f"look twice: {', '.join(item.grave)}. Why is it fine").strip()
            if not reason:
                self.terminal.out("not approved: it needs a reason")
                return False
        self._approve([item], reason=reason)
        return True

    def _approve(self, items: Sequence[ReviewItem], *, reason: str = "") -> None:
        shown = [f"{item.tool.tool_id}@{item.tool.digest}" for item in items]
        servers = {item.tool.server_id for item in items}
        new = {server_id: digest for server_id, digest in self._new.items() if server_id in servers}
        try:
            done = self.desk.approve(shown, reviewer=self.reviewer, reason=reason, signer=self.signer, servers=new)
        except ToolNotFoundError as fault:  # something else came in since
            self.terminal.out(show(str(fault)))
            self._done["skipped"] += len(items)
            return
        self._done["approved"] += len(done)
        self.terminal.out(f"approved {counted(len(done), 'definition')}")

    def _reject(self, item: ReviewItem) -> None:
        reason = self.terminal.ask("why")
        try:
            self.desk.reject([f"{item.tool.tool_id}@{item.tool.digest}"], reviewer=self.reviewer, reason=reason)
        except ToolNotFoundError as fault:
            self.terminal.out(show(str(fault)))
            self._done["skipped"] += 1
            return
        self._done["rejected"] += 1
        self.terminal.out("rejected")

    def _choose(self, keys: Mapping[str, str], *, whole: Sequence[str]) -> str:
        """The key of a decision. Looking at the whole and asking for help are none."""
        while True:
            self.terminal.out(" ".join(f"[{key}]" for key in keys))
            pressed = self.terminal.key()
            if pressed in _ENDS or pressed.lower() == "q":
                raise Quit
            key = pressed.lower()
            if key == "w":
                self._print(whole)
            elif key in keys and key != "?":
                return key
            else:
                self._print([f"  {key}  {means}" for key, means in keys.items()])

    def _print(self, lines: Sequence[str]) -> None:
        self.terminal.out("\n".join(["", *lines]))

    def _summary(self, queue: ReviewQueue) -> str:
        n_waiting = sum(item.waits for item in queue.items)
        left = n_waiting - self._done["approved"] - self._done["rejected"]
        told = [f"{self._done[what]} {what}" for what in ("approved", "rejected", "skipped")]
        unsigned = sum(item.tool.code == "unsigned" and not self._can_be_decided(item) for item in queue.items)
        more = f"; {unsigned} wait for another signer" if unsigned else ""
        return f"{', '.join(told)}; {left} still {'waits' if left == 1 else 'wait'}{more}"
