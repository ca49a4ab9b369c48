"""Reports over the whole company, users, settings, connected systems; and, for gates, whose a record is."""

from __future__ import annotations

from freight_desk import computed
from freight_desk.actions import LIST_OUTPUT, Add, Change, Compute, Get, List, Move, Total
from freight_desk.tool import Tool

OWNER_OUTPUT = {
    "type": "object",
    "properties": {"tenant": {"type": "string"}, "owner": {"type": "string"}},
    "required": ["tenant"],
}

REPORTS = (
    Tool(
        "report_open_holds",
        "All holds of all customers that are not cleared.",
        Compute(computed.open_holds_report, tables=("holds",), output=LIST_OUTPUT),
    ),
    Tool(
        "report_shipments_by_status",
        "How many shipments of the company are in each status, and how much they weigh.",
        Total("shipments", measure="weight_kg"),
    ),
    Tool(
        "report_revenue_by_account",
        "Invoiced amounts by customer account.",
        Total("invoices", group="account_id", measure="amount"),
    ),
    Tool(
        "report_aged_receivables",
        "What customers owe, by state of the invoice.",
        Total("invoices", measure="open_amount"),
    ),
    Tool(
        "report_claims_summary",
        "Claims for loss and damage by state, with amounts.",
        Total("claims", measure="amount"),
    ),
    Tool(
        "report_carrier_volume",
        "Shipments and weight by carrier.",
        Total("shipments", group="carrier_id", measure="weight_kg"),
    ),
    Tool(
        "report_customs_delays",
        "Customs requirements of all shipments by state: how much is missing everywhere.",
        Total("requirements"),
    ),
)

ADMINISTRATION = (
    Tool(
        "user_get",
        "Get one user of this system: name, role, state.",
        Get("users"),
    ),
    Tool(
        "user_list",
        "List the users of this system, optionally by role or state.",
        List("users", filters=("role", "status")),
    ),
    Tool(
        "user_create",
        "Create a user with a role.",
        Add("users", needs=("name", "email", "role"), sets=(("status", "active"),)),
    ),
    Tool(
        "user_role_set",
        "Give a user another role.",
        Change("users", needs=("role",)),
        destructive=True,
    ),
    Tool(
        "user_deactivate",
        "Lock a user out of this system.",
        Move("users", to="deactivated", allowed=("active",), needs=("reason",)),
        destructive=True,
    ),
    Tool(
        "audit_list",
        "List what was written in this system, by which tool and when.",
        List("audit"),
    ),
    Tool(
        "setting_list",
        "List the settings of this system.",
        List("settings"),
    ),
    Tool(
        "setting_set",
        "Change a setting for everybody.",
        Change("settings", needs=("value",)),
        destructive=True,
    ),
    Tool(
        "integration_list",
        "List the connected systems and whether they are up.",
        List("integrations", filters=("status",)),
    ),
    Tool(
        "integration_stop",
        "Take a connected system out of use for maintenance. Tools that need it fail until it is started again.",
        Move("integrations", to="down", allowed=("up",), needs=("reason",)),
    ),
    Tool(
        "integration_start",
        "Put a connected system back into use.",
        Move("integrations", to="up", allowed=("down",)),
    ),
)

DIRECTORY = (
    Tool(
        "shipment_owner_lookup",
        "Which tenant a shipment belongs to. For the gate in front of this server, not for people.",
        Compute(computed.owner_of_shipment, ("shipment_id",), tables=("shipments",), output=OWNER_OUTPUT),
    ),
    Tool(
        "record_owner_lookup",
        "Which tenant a record of any kind belongs to (account, hold, invoice, booking, document, note and so on), and "
        "for a hold which role answers for it. For the gate in front of this server, not for people.",
        Compute(computed.owner_of_record, ("record_id",), tables=("shipments",), output=OWNER_OUTPUT),
    ),
)
TOOLS = REPORTS + ADMINISTRATION + DIRECTORY
