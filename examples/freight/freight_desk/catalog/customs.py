"""Customs entries, requirements, inspections and codes; sanctions, licences and dangerous goods."""

from __future__ import annotations

from freight_desk import computed
from freight_desk.actions import LIST_OUTPUT, Add, Change, Compute, Get, List, Move, Search
from freight_desk.tool import Tool

CUSTOMS = (
    Tool(
        "customs_requirements_get",
        "What customs still wants before it releases a shipment: each required paper or certificate, whether it is "
        "missing or received, and the customs hold behind it.",
        Compute(computed.customs_requirements, ("shipment_id",), tables=("requirements", "holds")),
    ),
    Tool(
        "customs_checklist_get",
        "The customs authority's own checklist for a shipment's country of destination, with the steps that are done. "
        "Comes from the authority's system, which is not always up.",
        Compute(computed.customs_checklist, ("shipment_id",), tables=("documents",), output=LIST_OUTPUT),
        outside=True,
    ),
    Tool(
        "customs_entry_get",
        "Get one customs entry (declaration) with its HS code, declared value, broker and state.",
        Get("entries"),
    ),
    Tool(
        "customs_entry_list",
        "List the customs entries of a shipment.",
        List("entries", by=("shipment_id",), filters=("status",)),
    ),
    Tool(
        "customs_entry_create",
        "Prepare a customs entry for a shipment. It stays a draft until it is submitted.",
        Add(
            "entries",
            needs=("shipment_id", "country", "hs_code", "declared_value", "currency"),
            takes=("broker",),
            sets=(("status", "draft"),),
        ),
    ),
    Tool(
        "customs_entry_amend",
        "Change the HS code, the declared value or the currency of a customs entry.",
        Change("entries", takes=("hs_code", "declared_value", "currency")),
    ),
    Tool(
        "customs_entry_submit",
        "Submit a drafted customs entry to the authority. What was declared is then binding.",
        Move("entries", to="submitted", allowed=("draft",)),
        destructive=True,
        outside=True,
    ),
    Tool(
        "customs_entry_cancel",
        "Withdraw a customs entry that the authority has not released yet.",
        Move("entries", to="cancelled", allowed=("draft", "submitted"), needs=("reason",)),
        destructive=True,
    ),
    Tool(
        "customs_requirement_receive",
        "Mark a missing customs paper as received.",
        Move("requirements", to="received", allowed=("missing",)),
    ),
    Tool(
        "customs_requirement_waive",
        "Waive something that customs required, on the authority's written word. The reason is kept for audits.",
        Move("requirements", to="waived", allowed=("missing",), needs=("reason",)),
        destructive=True,
    ),
    Tool(
        "customs_inspection_list",
        "List the physical inspections that customs ordered for a shipment.",
        List("inspections", by=("shipment_id",), filters=("status",)),
    ),
    Tool(
        "customs_inspection_schedule",
        "Agree a day for a physical inspection by customs.",
        Add("inspections", needs=("shipment_id", "office_code", "planned_on"), sets=(("status", "scheduled"),)),
    ),
    Tool(
        "customs_duty_estimate",
        "Estimate import duty from an HS code and a declared value.",
        Compute(computed.duty_estimate, ("hs_code", "declared_value"), tables=("hs_codes",)),
    ),
    Tool(
        "customs_office_list",
        "List customs offices, with opening hours and what they ask for at import.",
        List("customs_offices", filters=("country",)),
    ),
    Tool(
        "hs_code_get",
        "Look up a Harmonised System code: what it covers and its duty rate.",
        Get("hs_codes"),
    ),
    Tool(
        "hs_code_search",
        "Find the Harmonised System code for goods described in words.",
        Search("hs_codes", fields=("covers",)),
    ),
)

COMPLIANCE = (
    Tool(
        "sanctions_screen",
        "Check a name against the lists of denied parties and keep the result.",
        Compute(computed.sanctions_screen, ("party",), tables=("screenings",), writes=True),
    ),
    Tool(
        "screening_list",
        "List earlier sanctions screenings, optionally only those with a hit.",
        List("screenings", filters=("status",)),
    ),
    Tool(
        "screening_clear",
        "Decide that a screening hit was somebody else of the same name.",
        Move("screenings", to="clear", allowed=("hit",), needs=("reason",)),
        destructive=True,
    ),
    Tool(
        "embargo_check",
        "Say whether trade with a country is under embargo.",
        Compute(computed.embargo_check, ("country",), tables=("settings",)),
    ),
    Tool(
        "dangerous_goods_check",
        "Say by which modes of transport a dangerous good may travel, and in which packing group.",
        Compute(computed.dangerous_goods_check, ("un_number", "mode"), tables=("dangerous_goods",)),
    ),
    Tool(
        "licence_list",
        "List our licences, optionally only the valid or the expired ones.",
        List("licences", filters=("status",)),
    ),
    Tool(
        "licence_renew",
        "Record that a licence was renewed until a later day.",
        Move("licences", to="valid", allowed=("valid", "expired"), needs=("valid_until",)),
    ),
)

TOOLS = CUSTOMS + COMPLIANCE
