"""What release 2 of the desk changes: one tool wants one argument more, as tools do sooner or later."""

from __future__ import annotations

from freight_desk import computed
from freight_desk.actions import Arguments, Compute
from freight_desk.records import DeskError, Record, Records
from freight_desk.tool import Tool


def requirements_at_office(records: Records, arguments: Arguments) -> Record:
    office = records.get("customs_offices", arguments["office_code"])
    destination = records.get("shipments", arguments["shipment_id"])["destination"]
    if office["country"] != destination[:2]:
        raise DeskError("conflict", f"{office['office_code']} does not clear goods for {destination}.")
    return computed.customs_requirements(records, arguments) | {"office_code": office["office_code"]}


CHANGED = (
    Tool(
        "customs_requirements_get",
        "What a customs office still wants before it releases a shipment: each required paper or certificate, whether "
        "it is missing or received, and the customs hold behind it.",
        Compute(requirements_at_office, ("shipment_id", "office_code"), tables=("requirements", "holds")),
    ),
)
