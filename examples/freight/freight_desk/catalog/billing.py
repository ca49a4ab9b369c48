"""Invoices, payments, credit, disputes and billing holds."""

from __future__ import annotations

from freight_desk import computed
from freight_desk.actions import Add, Change, Compute, Get, List, Move
from freight_desk.tool import Tool

TOOLS = (
    Tool(
        "billing_hold_get",
        "Why billing holds a shipment: the open billing holds and the overdue invoices behind them.",
        Compute(computed.billing_hold_get, ("shipment_id",), tables=("holds", "invoices")),
    ),
    Tool(
        "billing_hold_place",
        "Hold a shipment until the customer has paid.",
        Compute(computed.hold_place, ("shipment_id", "reason"), tables=("holds",), writes=True),
    ),
    Tool(
        "billing_hold_release",
        "Release a billing hold after payment, so that the shipment moves again.",
        Compute(computed.billing_hold_release, ("hold_id", "reason"), tables=("holds",), writes=True),
        destructive=True,
    ),
    Tool(
        "invoice_get",
        "Get one invoice: lines, amount, what is still open, due date, and its payments and credit notes.",
        Get("invoices", also=("payments", "credit_notes")),
    ),
    Tool(
        "invoice_list",
        "List the invoices of an account, optionally only drafts, sent, overdue, paid or void ones.",
        List("invoices", by=("account_id",), filters=("status",)),
    ),
    Tool(
        "invoice_create",
        "Start a draft invoice for an account.",
        Add(
            "invoices",
            needs=("account_id", "currency", "due_on"),
            takes=("memo",),
            sets=(("status", "draft"), ("amount", 0.0), ("open_amount", 0.0)),
        ),
    ),
    Tool(
        "invoice_line_add",
        "Add a line with text and amount to a draft invoice.",
        Compute(computed.invoice_add_line, ("invoice_id", "memo", "amount"), tables=("invoices",), writes=True),
    ),
    Tool(
        "invoice_send",
        "Send a draft invoice to the customer. It can no longer be edited afterwards.",
        Move("invoices", to="sent", allowed=("draft",)),
        outside=True,
    ),
    Tool(
        "invoice_void",
        "Void an invoice that should never have existed. It stays in the books as void.",
        Move("invoices", to="void", allowed=("draft", "sent", "overdue"), needs=("reason",)),
        destructive=True,
    ),
    Tool(
        "payment_list",
        "List the payments that came in for an invoice.",
        List("payments", by=("invoice_id",), filters=("status",)),
    ),
    Tool(
        "payment_record",
        "Record a payment for an invoice; when nothing is left open, the invoice is paid.",
        Compute(computed.payment_record, ("invoice_id", "amount"), tables=("payments",), writes=True),
    ),
    Tool(
        "payment_refund",
        "Pay a received payment back to the customer. The invoice is open again.",
        Compute(computed.payment_refund, ("payment_id", "reason"), tables=("payments",), writes=True),
        destructive=True,
        outside=True,
    ),
    Tool(
        "credit_note_create",
        "Issue a credit note that lowers what is open on an invoice.",
        Compute(computed.credit_note_create, ("invoice_id", "amount", "reason"), tables=("credit_notes",), writes=True),
    ),
    Tool(
        "credit_note_list",
        "List the credit notes of an invoice.",
        List("credit_notes", by=("invoice_id",)),
    ),
    Tool(
        "dispute_open",
        "Record that a customer contests an invoice, and why.",
        Add("disputes", needs=("invoice_id", "reason"), sets=(("status", "open"),)),
    ),
    Tool(
        "dispute_list",
        "List the disputes about an invoice.",
        List("disputes", by=("invoice_id",), filters=("status",)),
    ),
    Tool(
        "dispute_resolve",
        "Close a dispute about an invoice with its outcome.",
        Move("disputes", to="resolved", allowed=("open",), needs=("reason",)),
    ),
    Tool(
        "account_balance_get",
        "What an account owes, its credit limit and how much credit is left.",
        Compute(computed.account_balance, ("account_id",), tables=("invoices",)),
    ),
    Tool(
        "account_statement_get",
        "Statement of an account: invoices and payments since a day, and the balance.",
        Compute(computed.statement, ("account_id",), ("since",), tables=("invoices", "payments")),
    ),
    Tool(
        "credit_limit_set",
        "Set how much an account may owe before new shipments stop.",
        Change("accounts", needs=("credit_limit", "reason")),
    ),
)
