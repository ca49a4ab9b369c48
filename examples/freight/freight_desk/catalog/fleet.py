"""Our own trucks, drivers and trips."""

from __future__ import annotations

from freight_desk import computed
from freight_desk.actions import Add, Compute, Get, List, Move
from freight_desk.tool import Tool

TOOLS = (
    Tool(
        "vehicle_get",
        "Get one truck or trailer: plate, type, odometer, state, last position.",
        Get("vehicles"),
    ),
    Tool(
        "vehicle_list",
        "List our trucks and trailers, optionally only those that are free.",
        List("vehicles", filters=("status",)),
    ),
    Tool(
        "vehicle_workshop_send",
        "Send a free vehicle to the workshop.",
        Move("vehicles", to="workshop", allowed=("available",), needs=("reason",)),
    ),
    Tool(
        "vehicle_service_return",
        "Take a vehicle back from the workshop; it is available again.",
        Move("vehicles", to="available", allowed=("workshop",)),
    ),
    Tool(
        "maintenance_list",
        "List the workshop jobs of a vehicle.",
        List("maintenance", by=("vehicle_id",), filters=("status",)),
    ),
    Tool(
        "maintenance_schedule",
        "Plan a workshop job for a vehicle.",
        Add("maintenance", needs=("vehicle_id", "work", "planned_on"), sets=(("status", "planned"),)),
    ),
    Tool(
        "maintenance_complete",
        "Mark a planned workshop job as done.",
        Move("maintenance", to="done", allowed=("planned",)),
    ),
    Tool(
        "fuel_log_add",
        "Log fuel that was put into a vehicle.",
        Add("fuel", needs=("vehicle_id", "litres", "happened_at")),
    ),
    Tool(
        "driver_get",
        "Get one driver: licence classes, home depot, state.",
        Get("drivers"),
    ),
    Tool(
        "driver_list",
        "List drivers, optionally only those who are free, on a trip or on leave.",
        List("drivers", filters=("status",)),
    ),
    Tool(
        "driver_hours_get",
        "Hours that a driver has driven this week and hours left under the law.",
        Compute(computed.driver_hours, ("driver_id",), tables=("drivers",)),
    ),
    Tool(
        "driver_assign",
        "Put a free driver on a trip.",
        Compute(computed.trip_crew, ("trip_id", "driver_id"), tables=("trips", "drivers"), writes=True),
    ),
    Tool(
        "driver_unassign",
        "Take the driver off a trip.",
        Compute(computed.trip_uncrew, ("trip_id",), tables=("trips", "drivers"), writes=True),
    ),
    Tool(
        "trip_get",
        "Get one trip: vehicle, driver, route, state.",
        Get("trips"),
    ),
    Tool(
        "trip_list",
        "List trips, optionally of one vehicle or in one state.",
        List("trips", filters=("vehicle_id", "status")),
    ),
    Tool(
        "trip_create",
        "Plan a trip of a vehicle between two places.",
        Add("trips", needs=("vehicle_id", "origin", "destination", "planned_on"), sets=(("status", "planned"),)),
    ),
    Tool(
        "trip_start",
        "Start a planned trip.",
        Move("trips", to="started", allowed=("planned",)),
    ),
    Tool(
        "trip_complete",
        "Finish a trip that is under way.",
        Move("trips", to="completed", allowed=("started",)),
    ),
    Tool(
        "trip_cancel",
        "Cancel a trip that has not started.",
        Move("trips", to="cancelled", allowed=("planned",), needs=("reason",)),
        destructive=True,
    ),
)
