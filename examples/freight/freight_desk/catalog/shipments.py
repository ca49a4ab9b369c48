"""Shipments, their exceptions, holds, tracking and delivery."""

from __future__ import annotations

from freight_desk import computed
from freight_desk.actions import LIST_OUTPUT, Add, Change, Compute, Get, List, Move, Search
from freight_desk.tool import Tool

ROUTE = ("origin", "destination", "mode")
SHIPMENTS = (
    Tool(
        "shipment_get",
        "Get one shipment by its number: status, route, goods, carrier, expected arrival, and every hold on it with "
        "the kind and the reason. Start here when someone asks where a shipment is or why it is held.",
        Get("shipments", also=("holds",)),
    ),
    Tool(
        "shipment_list",
        "List the shipments of a customer account, optionally only those in one status or mode of transport.",
        List("shipments", by=("account_id",), filters=("status", "mode")),
    ),
    Tool(
        "shipment_search",
        "Search an account's shipments by the customer's reference, the goods or the route.",
        Search("shipments", by=("account_id",), fields=("reference", "goods", "origin", "destination")),
    ),
    Tool(
        "shipment_create",
        "Create a shipment for an account. It starts as a draft and moves nothing until it is booked.",
        Add(
            "shipments",
            needs=("account_id", *ROUTE, "goods", "weight_kg"),
            takes=("reference", "pieces", "incoterm", "priority"),
            sets=(("status", "draft"), ("priority", "standard")),
        ),
    ),
    Tool(
        "shipment_update",
        "Correct the description of a shipment: reference, goods, weight, number of packages, delivery term.",
        Change("shipments", takes=("reference", "goods", "weight_kg", "pieces", "incoterm")),
    ),
    Tool(
        "shipment_cancel",
        "Cancel a shipment that has not left yet. Carrier charges may apply; the reason is kept.",
        Move("shipments", to="cancelled", allowed=("draft", "booked"), needs=("reason",)),
        destructive=True,
    ),
    Tool(
        "shipment_priority_set",
        "Set how urgently a shipment is handled: standard, high or critical.",
        Change("shipments", needs=("priority",)),
    ),
    Tool(
        "shipment_delivery_window_set",
        "Agree a delivery window with the consignee and store it on the shipment.",
        Change("shipments", needs=("window_from", "window_to")),
    ),
    Tool(
        "shipment_carrier_assign",
        "Give a shipment to another carrier.",
        Change("shipments", needs=("carrier_id",)),
    ),
    Tool(
        "shipment_reroute",
        "Send a shipment that is under way through another port. Transit time and cost will change.",
        Compute(computed.shipment_reroute, ("shipment_id", "via", "reason"), tables=("shipments",), writes=True),
    ),
    Tool(
        "shipment_parties_get",
        "Who is involved in a shipment: the customer account, its contact persons and the carrier.",
        Compute(computed.shipment_parties, ("shipment_id",), tables=("shipments", "contacts")),
    ),
    Tool(
        "shipment_timeline_get",
        "Everything that happened to a shipment in order of time: events, holds and exceptions in one list.",
        Compute(computed.shipment_timeline, ("shipment_id",), tables=("shipments",), output=LIST_OUTPUT),
    ),
    Tool(
        "shipment_exception_list",
        "List what went wrong with a shipment: delays, damage, loss, temperature, wrong address.",
        List("exceptions", by=("shipment_id",), filters=("status",)),
    ),
    Tool(
        "shipment_exception_report",
        "Report that something went wrong with a shipment, so that the desk follows it up.",
        Add(
            "exceptions",
            needs=("shipment_id", "exception_kind", "reason"),
            sets=(("status", "open"),),
        ),
    ),
    Tool(
        "shipment_exception_resolve",
        "Close a reported exception with the way it was resolved.",
        Move("exceptions", to="resolved", allowed=("open",), needs=("reason",)),
    ),
)

HOLDS = (
    Tool(
        "hold_get",
        "Get one hold by its number: kind, reason, who placed it and since when.",
        Get("holds"),
    ),
    Tool(
        "hold_list",
        "List the holds on a shipment, past and present, optionally of one kind (customs, billing, security, damage).",
        List("holds", by=("shipment_id",), filters=("status", "kind")),
    ),
    Tool(
        "hold_place",
        "Stop a shipment: nothing moves until the hold is cleared. Say what kind of hold and why.",
        Compute(computed.hold_place, ("shipment_id", "kind", "reason"), tables=("holds",), writes=True),
    ),
    Tool(
        "hold_clear",
        "Clear a hold so that the shipment moves again. Only after what was missing has arrived; it cannot be taken "
        "back once the goods have left.",
        Compute(computed.hold_clear, ("hold_id", "reason"), tables=("holds",), writes=True),
        destructive=True,
    ),
    Tool(
        "hold_escalate",
        "Hand an active hold to somebody with more say: manager, customs agent or billing clerk.",
        Move("holds", to="escalated", allowed=("active",), needs=("to_role", "reason")),
    ),
    Tool(
        "hold_reason_update",
        "Correct or complete the reason that is written on a hold.",
        Change("holds", needs=("reason",)),
    ),
)

TRACKING = (
    Tool(
        "tracking_status_get",
        "Where a shipment is now: its status and the latest event that was reported.",
        Compute(computed.tracking_status, ("shipment_id",), tables=("shipments",)),
    ),
    Tool(
        "tracking_event_list",
        "List the tracking events of a shipment: picked up, departed, arrived, released, delivered.",
        List("events", by=("shipment_id",), filters=("event_code",)),
    ),
    Tool(
        "tracking_eta_get",
        "When a shipment is expected to arrive, and whether that day is firm.",
        Compute(computed.tracking_eta, ("shipment_id",), tables=("shipments",)),
    ),
    Tool(
        "tracking_event_add",
        "Record an event that a carrier reported by telephone or mail.",
        Add("events", needs=("shipment_id", "event_code", "place", "happened_at")),
    ),
    Tool(
        "tracking_eta_override",
        "Replace the expected day of arrival by one that the carrier gave, with the reason.",
        Change("shipments", needs=("eta", "reason")),
    ),
    Tool(
        "milestone_list",
        "List the planned milestones of a shipment and which of them are done.",
        List("milestones", by=("shipment_id",), filters=("status",)),
    ),
    Tool(
        "milestone_complete",
        "Mark a planned milestone as done.",
        Move("milestones", to="done", allowed=("planned",), takes=("happened_at",)),
    ),
    Tool(
        "container_locate",
        "Find a container by its number: last known place and the shipment that it carries.",
        Get("containers"),
    ),
    Tool(
        "proof_of_delivery_get",
        "Show who signed for a delivered shipment and when.",
        List("deliveries", by=("shipment_id",)),
    ),
    Tool(
        "proof_of_delivery_record",
        "Record that a shipment was handed over, by whom it was received and when. It is delivered from then on.",
        Compute(
            computed.delivery_record,
            ("shipment_id", "received_by", "happened_at"),
            tables=("deliveries",),
            writes=True,
        ),
    ),
)

TOOLS = SHIPMENTS + HOLDS + TRACKING
