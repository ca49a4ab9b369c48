"""Six cases of a careful operator, each on a folder of its own: a crib that was refreshed and approved.

Above: `run.py` prints them, the tests of the example hold them. Below: `watched.py` writes down each step.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from watched import Step, watched

from toolcrib.identity.standing import subject_value
from toolcrib.types import Revocation, RevokedKind

PAPERS = "Which papers does customs still need for S-204?"
ASKED = "Who placed hold H-31, and since when?"


async def customs_or_billing(root: Path) -> list[Step]:
    """S-206 is held twice. Each desk finds the tool for its own hold; who may use both is led by the words."""
    async with watched(root) as at:
        mara, ines, lena = (at.person(name) for name in ("mara", "ines", "lena"))
        why = "Why is shipment S-206 on hold?"
        at.select(why, mara, about="billing_hold_get")
        await at.call("customs_requirements_get", mara, shipment_id="S-206")
        at.select(why, ines, about="customs_requirements_get")
        await at.call("billing_hold_get", ines, shipment_id="S-206")
        at.select("Which papers does customs still require for S-206?", lena, about="customs_requirements_get")
        at.select("Which overdue invoices make billing hold S-206?", lena, about="billing_hold_get")
        await at.call("hold_clear", lena, hold_id="H-41", reason="The papers are here.")  # it is billing's hold
        return at.steps


async def nothing_fits(root: Path) -> list[Step]:
    """A tool for this exists and is not Mara's. She gets an honest `no_match`; the operator sees why."""
    async with watched(root) as at:
        mara, ines = at.person("mara"), at.person("ines")
        refund = "Refund a payment."
        at.select(refund, mara, about="payment_refund")
        await at.call("payment_refund", mara, payment_id="PAY-1", reason="Paid twice.")
        at.select(refund, ines, about="payment_refund")
        return at.steps


async def another_customer(root: Path) -> list[Step]:
    """S-517 is Baltic's. For Mara it is as if it did not exist, whatever the arguments say."""
    async with watched(root) as at:
        mara = at.person("mara")
        await at.call("shipment_get", mara, shipment_id="S-517")
        await at.call("shipment_get", mara, shipment_id="S-999")
        await at.call("internal_note_draft", mara, shipment_id="S-517", body="Not ours.")
        await at.call("shipment_get", at.person("jon"), shipment_id="S-517")
        return at.steps


async def revoked_after_discovery(root: Path) -> list[Step]:
    """Having found a tool counts for nothing: the call is judged by what its caller may do when it leaves."""
    async with watched(root) as at:
        mara = at.person("mara")
        found = at.select(PAPERS, mara, about="customs_requirements_get")["customs_requirements_get"]
        file = root / "callers" / "mara.json"
        described = json.loads(file.read_text("utf-8"))
        described["scopes"].remove("customs.read")
        file.write_text(json.dumps(described), "utf-8")
        at.meanwhile("mara loses the scope customs.read")
        await at.call(found.name, at.person("mara"), digest=found.digest, shipment_id="S-204")
        await at.call("shipment_get", at.person("mara"), shipment_id="S-204")  # the rest is still hers
        gone = subject_value("mara", tenant="northwind")  # as `toolcrib revoke subject mara --tenant northwind`
        now = datetime.now(UTC).isoformat()
        at.crib.store.revoke(Revocation(kind=RevokedKind.SUBJECT, value=gone, at=now, by="ravi", reason="has left"))
        at.meanwhile("mara is revoked")
        await at.call("shipment_get", mara, shipment_id="S-204")
        return at.steps


async def changed_or_unavailable(root: Path) -> list[Step]:
    """A definition that changed waits for a reviewer; a service that is down is an error, never an empty answer."""
    async with watched(root) as at:
        mara, ravi = at.person("mara"), at.person("ravi")
        found = at.select(PAPERS, mara, about="customs_requirements_get")["customs_requirements_get"]
        _edit(root, 'env = { FREIGHT_STATE = "freight-state.json"', add=', FREIGHT_RELEASE = "2"')
        await at.crib.refresh()
        at.meanwhile("the server lists another definition of it")
        await at.call(found.name, mara, digest=found.digest, shipment_id="S-204")
        at.crib.approve([found.tool_id], reviewer="you", reason="wants the customs office, too")
        # Started with another variable it is another server, and approved as such.
        for server in at.crib.review_desk.queue(probe=False).servers:
            at.crib.approve_server(server.server_id, digest=server.digest, reviewer="you")
        at.meanwhile("the new definition is approved; mara still calls the old one")
        await at.call(found.name, mara, digest=found.digest, shipment_id="S-204")
        again = at.select(PAPERS, mara, about="customs_requirements_get")["customs_requirements_get"]
        await at.call(again.name, mara, digest=again.digest, shipment_id="S-204", office_code="USNYC-4601")
        await at.call("integration_stop", ravi, integration_id="customs-checklist", reason="maintenance")
        await at.call("customs_checklist_get", mara, shipment_id="S-204")
    (root / "server.py").rename(root / "moved.py")
    async with watched(root) as after:
        after.meanwhile("the server's program is taken away, and the crib opened anew")
        for _ in range(4):  # [gate.circuit] failures = 3: the fourth call is not even tried
            await after.call("hs_code_search", mara, query="pumps")
        return at.steps + after.steps


async def a_read_that_wants_to_write(root: Path) -> list[Step]:
    """Lena only asked. What a model proposes beyond that waits for a second person, or is out of reach."""
    async with watched(root) as at:
        lena, nils = at.person("lena"), at.person("nils")
        proposed = {"hold_id": "H-31", "reason": "The invoice has arrived."}
        at.select(ASKED, lena, about="hold_get")
        await at.call("hold_get", lena, hold_id="H-31")
        waiting = (await at.call("hold_clear", lena, **proposed)).verdict.approval_id
        await at.call("hold_get", lena, hold_id="H-31")  # as it was
        auditing = at.person("lena", stage="audit")
        at.meanwhile("lena works in the stage audit")
        at.select(ASKED, auditing, about="internal_note_draft")
        await at.call("internal_note_draft", auditing, shipment_id="S-204", body="All is well.")
        await at.call("hold_clear", auditing, **proposed)
        at.meanwhile("back in her own stage")
        at.grant(waiting, lena)
        at.grant(waiting, nils)
        await at.call("hold_clear", lena, hold_id="H-31", reason="Another reason.")  # not what was approved
        at.meanwhile("the call that was approved")
        await at.call("hold_clear", lena, **proposed)
        at.meanwhile("the same once more")
        await at.call("hold_clear", lena, **proposed)
        await at.call("hold_clear", lena, key="once-more", **proposed)
        return at.steps


Case = Callable[[Path], Awaitable[list[Step]]]
SEARCHED, DONE, NOTHING = ("selected",), ("ok",), ("not_available",)
CASES: tuple[tuple[str, Case, tuple[str, ...]], ...] = (
    ("Customs hold or billing hold", customs_or_billing, (*(SEARCHED + DONE) * 2, *SEARCHED * 2, *NOTHING)),
    ("No permitted tool fits", nothing_fits, ("no_match", *NOTHING, *SEARCHED)),
    ("Another customer's shipment", another_customer, (*NOTHING * 3, *DONE)),
    ("Access revoked after discovery", revoked_after_discovery, (*SEARCHED, *NOTHING, *DONE, "unavailable")),
    (
        "A changed definition, a service that is down",
        changed_or_unavailable,
        (*SEARCHED, *NOTHING, "conflict", *SEARCHED, *DONE * 2, "tool_error", *("unavailable",) * 4),
    ),
    (
        "A read task that proposes a write",
        a_read_that_wants_to_write,
        (
            *(*SEARCHED, *DONE, "needs_approval", *DONE),
            *(*SEARCHED, *NOTHING * 2),
            *("not_allowed", "granted"),
            *("needs_approval", *DONE, "duplicate", "needs_approval"),
        ),
    ),
)
"""Title, case, and the code of each of its steps when everything is as it should be."""


def _edit(root: Path, row: str, *, add: str) -> None:
    """The configuration with something added to a row, as an operator would do it in an editor."""
    file = root / "toolcrib.toml"
    text = file.read_text("utf-8")
    assert row in text
    file.write_text(text.replace(row, row + add), "utf-8")
