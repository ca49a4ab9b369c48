"""Bookings, quotes and rates."""

from __future__ import annotations

from freight_desk import computed
from freight_desk.actions import LIST_OUTPUT, Add, Change, Compute, Get, List, Move
from freight_desk.tool import Tool

ROUTE = ("origin", "destination")
BOOKINGS = (
    Tool(
        "booking_get",
        "Get one booking of transport capacity: route, day ready, equipment, carrier, state.",
        Get("bookings"),
    ),
    Tool(
        "booking_list",
        "List the bookings of an account, optionally only requested, confirmed, cancelled or shipped ones.",
        List("bookings", by=("account_id",), filters=("status", "mode")),
    ),
    Tool(
        "booking_create",
        "Request capacity for goods of an account between two places.",
        Add(
            "bookings",
            needs=("account_id", *ROUTE, "mode", "weight_kg", "ready_on"),
            takes=("equipment", "carrier_id"),
            sets=(("status", "requested"),),
        ),
    ),
    Tool(
        "booking_amend",
        "Change weight, day ready, equipment or carrier of a booking.",
        Change("bookings", takes=("weight_kg", "ready_on", "equipment", "carrier_id")),
    ),
    Tool(
        "booking_confirm",
        "Confirm a requested booking with the carrier who takes it.",
        Move("bookings", to="confirmed", allowed=("requested",), needs=("carrier_id",)),
    ),
    Tool(
        "booking_cancel",
        "Cancel a booking. Dead freight may be charged.",
        Move("bookings", to="cancelled", allowed=("requested", "confirmed"), needs=("reason",)),
        destructive=True,
    ),
    Tool(
        "booking_cutoff_get",
        "The last day on which goods of a booking can be handed in for the next departure.",
        Compute(computed.booking_cutoff, ("booking_id",), tables=("bookings",)),
    ),
    Tool(
        "booking_convert",
        "Turn a confirmed booking into a shipment.",
        Compute(computed.booking_convert, ("booking_id",), tables=("bookings", "shipments"), writes=True),
    ),
)

QUOTES = (
    Tool(
        "quote_get",
        "Get one quote: route, price, rate used, last day it holds, state.",
        Get("quotes"),
    ),
    Tool(
        "quote_list",
        "List the quotes given to an account.",
        List("quotes", by=("account_id",), filters=("status",)),
    ),
    Tool(
        "quote_create",
        "Price a transport for an account from the cheapest active rate, and keep it as a quote for 30 days.",
        Compute(computed.quote_create, ("account_id", *ROUTE, "mode", "weight_kg"), tables=("quotes",), writes=True),
    ),
    Tool(
        "quote_extend",
        "Let a quote hold until a later day.",
        Change("quotes", needs=("valid_until",)),
    ),
    Tool(
        "quote_accept",
        "Accept a quote on the customer's behalf; capacity is requested at once.",
        Compute(computed.quote_accept, ("quote_id",), tables=("quotes", "bookings"), writes=True),
    ),
    Tool(
        "quote_decline",
        "Close a quote that the customer does not want.",
        Move("quotes", to="declined", allowed=("open",), needs=("reason",)),
    ),
)

RATES = (
    Tool(
        "rate_get",
        "Get one contract rate: lane, mode, carrier, price per kilogram.",
        Get("rates"),
    ),
    Tool(
        "rate_search",
        "Find active rates between two places, optionally for one mode of transport.",
        Compute(computed.rate_search, ROUTE, ("mode",), tables=("rates",), output=LIST_OUTPUT),
    ),
    Tool(
        "rate_create",
        "Enter a rate agreed with a carrier.",
        Add("rates", needs=(*ROUTE, "mode", "carrier_id", "price_per_kg"), sets=(("status", "active"),)),
    ),
    Tool(
        "rate_price_set",
        "Change the price of a rate for all later quotes.",
        Change("rates", needs=("price_per_kg",)),
    ),
    Tool(
        "rate_retire",
        "Retire a rate so that nobody quotes from it any more.",
        Move("rates", to="retired", allowed=("active",), needs=("reason",)),
    ),
    Tool(
        "surcharge_list",
        "List the surcharges in force: fuel, peak season, low sulphur.",
        List("surcharges", filters=("mode",)),
    ),
    Tool(
        "surcharge_set",
        "Set the percentage of a surcharge.",
        Change("surcharges", needs=("percent",)),
    ),
)

TOOLS = BOOKINGS + QUOTES + RATES
