"""Carriers, departures, lanes and ports: the network that all customers share."""

from __future__ import annotations

from freight_desk import computed
from freight_desk.actions import LIST_OUTPUT, Add, Compute, Get, List, Move, Search
from freight_desk.tool import Tool

CARRIERS = (
    Tool(
        "carrier_get",
        "Get one carrier with its services and state.",
        Get("carriers", also=("carrier_services",)),
    ),
    Tool(
        "carrier_list",
        "List carriers, optionally by mode of transport or state.",
        List("carriers", filters=("mode", "status")),
    ),
    Tool(
        "carrier_search",
        "Search carriers by name or home country.",
        Search("carriers", fields=("name", "country")),
    ),
    Tool(
        "carrier_create",
        "Add a carrier that we have a contract with.",
        Add("carriers", needs=("name", "mode", "country"), sets=(("status", "active"),)),
    ),
    Tool(
        "carrier_suspend",
        "Stop giving work to a carrier, with the reason.",
        Move("carriers", to="suspended", allowed=("active",), needs=("reason",)),
        destructive=True,
    ),
    Tool(
        "carrier_reinstate",
        "Give work to a suspended carrier again.",
        Move("carriers", to="active", allowed=("suspended",), needs=("reason",)),
    ),
    Tool(
        "carrier_scorecard_get",
        "How well a carrier did: shipments, exceptions and claims.",
        Compute(computed.carrier_scorecard, ("carrier_id",), tables=("carriers",)),
    ),
)

SCHEDULES = (
    Tool(
        "schedule_get",
        "Get one scheduled departure: vessel, flight or train, days of departure and arrival.",
        Get("sailings"),
    ),
    Tool(
        "schedule_list",
        "List scheduled departures between two places.",
        List("sailings", by=("origin", "destination"), filters=("mode", "status")),
    ),
    Tool(
        "schedule_delay_record",
        "Record that a departure is late by so many hours.",
        Move("sailings", to="delayed", allowed=("on_time", "delayed"), needs=("delay_hours",)),
    ),
    Tool(
        "lane_get",
        "Get one lane: the two places, the mode, usual days.",
        Get("lanes"),
    ),
    Tool(
        "lane_list",
        "List the lanes that we serve, optionally from one place or by one mode.",
        List("lanes", filters=("origin", "mode", "status")),
    ),
    Tool(
        "lane_create",
        "Open a new lane between two places.",
        Add("lanes", needs=("origin", "destination", "mode", "transit_days"), sets=(("status", "active"),)),
    ),
    Tool(
        "lane_disable",
        "Stop offering a lane, for example because of a strike.",
        Move("lanes", to="disabled", allowed=("active",), needs=("reason",)),
    ),
    Tool(
        "transit_time_estimate",
        "Estimate the days from loading to delivery between two places, by mode.",
        Compute(computed.transit_estimate, ("origin", "destination"), ("mode",), tables=("lanes",), output=LIST_OUTPUT),
    ),
    Tool(
        "port_get",
        "Get a port by its UN/LOCODE: name, country, how congested it is.",
        Get("ports"),
    ),
    Tool(
        "port_search",
        "Search ports by name or country.",
        Search("ports", fields=("name", "country")),
    ),
)

TOOLS = CARRIERS + SCHEDULES
