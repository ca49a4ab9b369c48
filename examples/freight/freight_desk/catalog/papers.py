"""Documents, claims and internal notes."""

from __future__ import annotations

from freight_desk import computed
from freight_desk.actions import Add, Change, Compute, Get, List, Move, Remove, Search
from freight_desk.tool import Tool

DOCUMENTS = (
    Tool(
        "document_get",
        "Get one document of a shipment's file: kind, state, file name.",
        Get("documents"),
    ),
    Tool(
        "document_list",
        "List the documents in a shipment's file, optionally of one kind or state.",
        List("documents", by=("shipment_id",), filters=("document_type", "status")),
    ),
    Tool(
        "document_search",
        "Search a shipment's file by file name or kind of document.",
        Search("documents", by=("shipment_id",), fields=("file_name", "document_type")),
    ),
    Tool(
        "bill_of_lading_get",
        "Get the bill of lading of a shipment.",
        Compute(computed.document_of_type("bill_of_lading"), ("shipment_id",), tables=("documents",)),
    ),
    Tool(
        "packing_list_get",
        "Get the packing list of a shipment.",
        Compute(computed.document_of_type("packing_list"), ("shipment_id",), tables=("documents",)),
    ),
    Tool(
        "commercial_invoice_get",
        "Get the seller's commercial invoice from a shipment's file (a trade paper, not one of our bills).",
        Compute(computed.document_of_type("commercial_invoice"), ("shipment_id",), tables=("documents",)),
    ),
    Tool(
        "document_request",
        "Ask the customer for a document that is missing in a shipment's file.",
        Add("documents", needs=("shipment_id", "document_type"), takes=("reason",), sets=(("status", "requested"),)),
        outside=True,
    ),
    Tool(
        "document_register",
        "Put a document that arrived into a shipment's file.",
        Add("documents", needs=("shipment_id", "document_type", "file_name"), sets=(("status", "received"),)),
    ),
    Tool(
        "document_approve",
        "Confirm that a received document is complete and legible.",
        Move("documents", to="approved", allowed=("received",)),
    ),
    Tool(
        "document_reject",
        "Turn a received document down, with the reason that the customer is told.",
        Move("documents", to="rejected", allowed=("received", "approved"), needs=("reason",)),
    ),
    Tool(
        "document_delete",
        "Delete a document from a shipment's file for good.",
        Remove("documents"),
        destructive=True,
    ),
)

CLAIMS = (
    Tool(
        "claim_get",
        "Get one claim for loss or damage: amount, evidence, state.",
        Get("claims"),
    ),
    Tool(
        "claim_list",
        "List the claims about a shipment.",
        List("claims", by=("shipment_id",), filters=("status",)),
    ),
    Tool(
        "claim_open",
        "Open a claim for loss of or damage to a shipment.",
        Add("claims", needs=("shipment_id", "amount", "reason"), takes=("evidence",), sets=(("status", "open"),)),
    ),
    Tool(
        "claim_settle",
        "Settle a claim for an amount. It is paid out to the customer.",
        Move("claims", to="settled", allowed=("open",), needs=("amount", "reason")),
        destructive=True,
    ),
    Tool(
        "claim_reject",
        "Reject a claim with the reason that the customer is told.",
        Move("claims", to="rejected", allowed=("open",), needs=("reason",)),
    ),
)

NOTES = (
    Tool(
        "internal_note_draft",
        "Draft an internal note about a shipment. Colleagues see it only once it is published; customers never do.",
        Add("notes", needs=("shipment_id", "body"), sets=(("status", "draft"),)),
    ),
    Tool(
        "internal_note_get",
        "Get one internal note with its text and state.",
        Get("notes"),
    ),
    Tool(
        "internal_note_list",
        "List the internal notes about a shipment, optionally only drafts or published ones.",
        List("notes", by=("shipment_id",), filters=("status",)),
    ),
    Tool(
        "internal_note_edit",
        "Replace the text of an internal note.",
        Change("notes", needs=("body",)),
    ),
    Tool(
        "internal_note_publish",
        "Publish a drafted internal note to everybody who works on the shipment.",
        Move("notes", to="published", allowed=("draft",)),
    ),
    Tool(
        "internal_note_delete",
        "Delete an internal note that is still a draft.",
        Remove("notes", only="draft"),
        destructive=True,
    ),
)

TOOLS = DOCUMENTS + CLAIMS + NOTES
