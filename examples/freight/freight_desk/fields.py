"""What each argument is: one JSON Schema per name, shared by every tool that takes it.

Each schema has an example taken from the seed records, so a reader (and a test) can call any tool.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def ident(prefix: str, example: str, what: str) -> Schema:
    return {"type": "string", "pattern": f"^{prefix}-[0-9]+$", "description": what, "examples": [example]}


def text(example: str, what: str, *, max_length: int = 200) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": max_length, "description": what, "examples": [example]}


def choice(what: str, *values: str) -> Schema:
    return {"type": "string", "enum": list(values), "description": what, "examples": [values[0]]}


def number(example: float, what: str, *, minimum: float = 0) -> Schema:
    return {"type": "number", "minimum": minimum, "description": what, "examples": [example]}


def whole(example: int, what: str, *, minimum: int = 0, maximum: int = 1_000_000) -> Schema:
    return {"type": "integer", "minimum": minimum, "maximum": maximum, "description": what, "examples": [example]}


def day(example: str, what: str) -> Schema:
    return {"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "description": what} | {
        "examples": [example]
    }


def moment(example: str, what: str) -> Schema:
    return {"type": "string", "format": "date-time", "description": what, "examples": [example]}


MODES = ("sea", "air", "road", "rail")
HOLD_KINDS = ("CUSTOMS", "BILLING", "SECURITY", "DAMAGE")
DOCUMENT_TYPES = (
    "commercial_invoice",
    "packing_list",
    "bill_of_lading",
    "origin_certificate",
    "hs_classification_certificate",
    "dangerous_goods_declaration",
    "insurance_certificate",
)

FIELDS: dict[str, Schema] = {
    # who
    "account_id": ident("A", "A-10", "Customer account, for example A-10."),
    "contact_id": ident("CON", "CON-1", "Contact person of a customer account."),
    "name": text("Ada Lindqvist", "Full name of the person or company."),
    "email": text("ada@northwind.example", "E-mail address."),
    "phone": text("+46 8 555 0101", "Telephone number with country code.", max_length=40),
    "job": text("Logistics manager", "What this person does at the customer.", max_length=80),
    "street": text("Hamngatan 4", "Street and house number."),
    "city": text("Gothenburg", "City.", max_length=80),
    "postal_code": text("411 06", "Postal code.", max_length=20),
    "country": {
        "type": "string",
        "pattern": "^[A-Z]{2}$",
        "description": "Country as two-letter ISO 3166 code.",
        "examples": ["SE"],
    },
    "language": choice("Language for letters and notifications.", "en", "sv", "de", "lt", "pl"),
    "party": text("Harbour Tools Ltd", "Name of the company or person to check."),
    "user_id": ident("USR", "USR-3", "User of this system."),
    "role": choice("Role of a user.", "operator", "billing_clerk", "customs_agent", "dispatcher", "manager", "admin"),
    # shipments
    "shipment_id": ident("S", "S-204", "Shipment number, for example S-204."),
    "reference": text("PO-88121", "The customer's own reference, such as a purchase order number.", max_length=60),
    "origin": text("SEGOT", "Place of loading as UN/LOCODE.", max_length=5),
    "destination": text("USNYC", "Place of delivery as UN/LOCODE.", max_length=5),
    "mode": choice("Mode of transport.", *MODES),
    "goods": text("Hydraulic pumps", "What is shipped, in plain words."),
    "weight_kg": number(1840, "Gross weight in kilograms."),
    "pieces": whole(12, "Number of packages.", minimum=1),
    "priority": choice("How urgent it is.", "standard", "high", "critical"),
    "incoterm": choice("Delivery term agreed between seller and buyer.", "EXW", "FCA", "FOB", "CIF", "DAP", "DDP"),
    "window_from": moment("2026-12-04T08:00:00Z", "Start of the delivery window, UTC."),
    "window_to": moment("2026-12-04T12:00:00Z", "End of the delivery window, UTC."),
    "via": text("NLRTM", "Port to route through, as UN/LOCODE.", max_length=5),
    "exception_id": ident("EX", "EX-1", "Reported exception of a shipment."),
    "exception_kind": choice("What went wrong.", "delay", "damage", "loss", "temperature", "wrong_address"),
    "hold_id": ident("H", "H-31", "Hold on a shipment."),
    "kind": choice("What sort of hold it is.", *HOLD_KINDS),
    "reason": text(
        "Agreed with the customer by phone", "Why, in a sentence; it is kept in the record.", max_length=500
    ),
    "to_role": choice("Who should look at it next.", "manager", "customs_agent", "billing_clerk"),
    # customs
    "entry_id": ident("CE", "CE-71", "Customs entry (declaration)."),
    "requirement_id": ident("CR", "CR-1", "One requirement that customs set for a shipment."),
    "hs_code": {
        "type": "string",
        "pattern": "^[0-9]{6}$",
        "description": "Harmonised System code, six digits.",
        "examples": ["841350"],
    },
    "office_code": text("USNYC-4601", "Customs office.", max_length=20),
    "declared_value": number(48200, "Value of the goods for customs, in the entry's currency."),
    "currency": choice("Currency as ISO 4217 code.", "EUR", "USD", "SEK", "PLN"),
    "broker": text("Atlantic Brokers Inc", "Customs broker who acts for the importer."),
    "document_type": choice("Kind of document.", *DOCUMENT_TYPES),
    # money
    "invoice_id": ident("INV", "INV-1187", "Invoice to a customer."),
    "payment_id": ident("PAY", "PAY-1", "Payment received."),
    "dispute_id": ident("DSP", "DSP-1", "Dispute about an invoice."),
    "amount": number(250, "Amount in the currency of the account or invoice."),
    "due_on": day("2026-12-31", "Due date."),
    "memo": text("Ocean freight, December", "Text shown on the invoice line."),
    "credit_limit": number(50_000, "What the account may owe, in its currency."),
    "quote_id": ident("Q", "Q-61", "Quote given to a customer."),
    "valid_until": day("2027-01-31", "Last day on which the offer holds."),
    "rate_id": ident("RATE", "RATE-1", "Contract rate on a lane."),
    "price_per_kg": number(0.42, "Price per kilogram in EUR."),
    "surcharge_id": ident("SUR", "SUR-1", "Surcharge on top of a rate."),
    "percent": number(6.5, "Percentage of the freight charge."),
    # bookings, carriers, network
    "booking_id": ident("BK", "BK-41", "Booking of transport capacity."),
    "ready_on": day("2026-12-10", "Day on which the goods are ready."),
    "equipment": choice("Equipment needed.", "20ft", "40ft", "40ft_reefer", "trailer", "pallet_space"),
    "carrier_id": ident("CAR", "CAR-1", "Carrier that moves the goods."),
    "sailing_id": ident("SAIL", "SAIL-1", "Scheduled departure of a vessel, flight or train."),
    "delay_hours": whole(12, "Delay in hours.", minimum=1, maximum=2000),
    "lane_id": ident("LANE", "LANE-1", "Lane: a pair of places that we serve."),
    "transit_days": whole(14, "Usual days from loading to delivery.", minimum=1, maximum=120),
    "locode": {
        "type": "string",
        "pattern": "^[A-Z]{2}[A-Z0-9]{3}$",
        "description": "Port or place as UN/LOCODE.",
        "examples": ["USNYC"],
    },
    # tracking
    "event_code": choice("What happened.", "picked_up", "departed", "arrived", "customs_released", "delivered"),
    "place": text("USNYC", "Where, as UN/LOCODE or in words.", max_length=80),
    "happened_at": moment("2026-12-01T09:30:00Z", "When, UTC."),
    "eta": day("2026-12-06", "Expected day of arrival."),
    "milestone_id": ident("MS", "MS-1", "Planned milestone of a shipment."),
    "received_by": text("R. Ortiz", "Who signed for the goods."),
    "container_no": {
        "type": "string",
        "pattern": "^[A-Z]{4}[0-9]{7}$",
        "description": "Container number, four letters and seven digits.",
        "examples": ["MSKU4471820"],
    },
    # warehouse
    "warehouse_id": ident("WH", "WH-1", "Warehouse."),
    "lot_id": ident("LOT", "LOT-1", "Lot of goods in a warehouse."),
    "quantity": whole(5, "Number of units.", minimum=1),
    "location": text("B-04-2", "Bay, rack and level in the warehouse.", max_length=20),
    "starts_at": moment("2026-12-03T07:00:00Z", "Start, UTC."),
    "pick_list_id": ident("PICK", "PICK-1", "Pick list."),
    # papers
    "document_id": ident("DOC", "DOC-1", "Document in the file of a shipment."),
    "file_name": text("invoice-88121.pdf", "Name of the file."),
    "claim_id": ident("CL", "CL-1", "Claim for loss or damage."),
    "evidence": text("Photo of the broken seal", "What supports the claim.", max_length=500),
    "note_id": ident("NOTE", "NOTE-1", "Internal note."),
    "body": text("Waiting for two customs papers.", "Text of the note or message.", max_length=4000),
    "subject": text("Update on your shipment", "Subject line.", max_length=120),
    "template_id": ident("TPL", "TPL-1", "Template of a notification or document."),
    "rule_id": ident("NR", "NR-1", "Rule that sends notifications by itself."),
    "event": choice("Event that triggers the rule.", "delay", "hold_placed", "delivered", "invoice_due"),
    # fleet
    "vehicle_id": ident("VEH", "VEH-1", "Truck or trailer."),
    "maintenance_id": ident("MNT", "MNT-1", "Maintenance job."),
    "driver_id": ident("DRV", "DRV-1", "Driver."),
    "trip_id": ident("TRIP", "TRIP-1", "Trip of a vehicle."),
    "litres": number(310, "Fuel in litres."),
    "work": text("Brake pads", "Work to be done.", max_length=200),
    "planned_on": day("2026-12-15", "Planned day."),
    # compliance and administration
    "screening_id": ident("SCR", "SCR-1", "Result of a sanctions screening."),
    "licence_id": ident("LIC", "LIC-1", "Export or transport licence."),
    "un_number": {
        "type": "string",
        "pattern": "^UN[0-9]{4}$",
        "description": "UN number of a dangerous good.",
        "examples": ["UN1263"],
    },
    "setting": text("free_storage_days", "Name of a setting.", max_length=60),
    "value": text("7", "New value, as text.", max_length=200),
    "integration_id": text("customs-checklist", "Connected system.", max_length=60),
    "record_id": text("H-31", "Id of a record that belongs to a customer.", max_length=40),
    # lists
    "query": text("pumps", "Words to look for; all of them must occur.", max_length=120),
    "limit": whole(25, "How many records to return at most.", minimum=1, maximum=100),
    "after": text("S-204", "Continue after this id, from an earlier answer.", max_length=40),
    "since": day("2026-11-01", "Only what happened on or after this day."),
}
