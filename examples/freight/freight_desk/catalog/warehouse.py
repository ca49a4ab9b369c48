"""Warehouses, stock, docks and picking."""

from __future__ import annotations

from freight_desk import computed
from freight_desk.actions import Add, Change, Compute, Get, List, Move
from freight_desk.tool import Tool

TOOLS = (
    Tool(
        "warehouse_get",
        "Get one warehouse: address, opening hours, temperature zones.",
        Get("warehouses"),
    ),
    Tool(
        "warehouse_list",
        "List our warehouses, optionally in one country.",
        List("warehouses", filters=("country",)),
    ),
    Tool(
        "warehouse_capacity_get",
        "How many places of a warehouse are used and free.",
        Compute(computed.warehouse_capacity, ("warehouse_id",), tables=("warehouses",)),
    ),
    Tool(
        "stock_get",
        "Get one lot of goods in store: what, how many, where, blocked or free.",
        Get("lots"),
    ),
    Tool(
        "stock_list",
        "List the goods that an account has in store, optionally in one warehouse.",
        List("lots", by=("account_id",), filters=("warehouse_id", "status")),
    ),
    Tool(
        "stock_receive",
        "Book goods of an account into a warehouse.",
        Add(
            "lots",
            needs=("account_id", "warehouse_id", "goods", "quantity", "location"),
            sets=(("status", "stored"),),
        ),
    ),
    Tool(
        "stock_move",
        "Move a lot to another place in the same warehouse.",
        Change("lots", needs=("location",)),
    ),
    Tool(
        "stock_adjust",
        "Correct the number of units of a lot after a count.",
        Change("lots", needs=("quantity", "reason")),
        destructive=True,
    ),
    Tool(
        "stock_block",
        "Block a lot, so that nothing of it is picked.",
        Move("lots", to="blocked", allowed=("stored",), needs=("reason",)),
    ),
    Tool(
        "stock_unblock",
        "Free a blocked lot for picking.",
        Move("lots", to="stored", allowed=("blocked",), needs=("reason",)),
    ),
    Tool(
        "storage_charge_get",
        "What storing a lot has cost so far, after the free days.",
        Compute(computed.storage_charge, ("lot_id",), tables=("lots",)),
    ),
    Tool(
        "pick_list_create",
        "Order units of a lot to be picked.",
        Add("pick_lists", needs=("lot_id", "quantity"), sets=(("status", "open"),)),
    ),
    Tool(
        "pick_list_complete",
        "Mark a pick list as done; the units leave the stock.",
        Compute(computed.pick_list_complete, ("pick_list_id",), tables=("pick_lists", "lots"), writes=True),
    ),
    Tool(
        "dock_appointment_list",
        "List the appointments at loading docks for a shipment.",
        List("appointments", by=("shipment_id",), filters=("status",)),
    ),
    Tool(
        "dock_appointment_book",
        "Book a time at a loading dock for a shipment.",
        Add("appointments", needs=("shipment_id", "warehouse_id", "starts_at"), sets=(("status", "booked"),)),
    ),
)
