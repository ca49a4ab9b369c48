"""The desk's records: tables in memory, seeded from `seed/*.json`, kept in a JSON file when one is named.

1. A record belongs to a customer when its table says through which field (`through`); the rest is the company's.
2. A record's table, key and prefix are declared in TABLES alone; tools refer to tables by name.
3. A file, once written, is replaced whole, so a killed process leaves the old or the new state, never half of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Record = dict[str, Any]
SEED = Path(__file__).parent / "seed"


class DeskError(Exception):
    """The desk cannot do what was asked. `code`: `not_found`, `conflict`, `invalid` or `unavailable`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Table:
    """`key`: the field that names a record. `prefix`: of new ids; "" where ids are given. `through`: whose it is."""

    key: str
    prefix: str = ""
    through: str = ""
    statuses: tuple[str, ...] = ()


TABLES: dict[str, Table] = {
    "accounts": Table("account_id", "A", "tenant", ("active", "suspended")),
    "contacts": Table("contact_id", "CON", "account_id"),
    "addresses": Table("address_id", "ADR", "account_id"),
    "shipments": Table(
        "shipment_id", "S", "account_id", ("draft", "booked", "in_transit", "held", "delivered", "cancelled")
    ),
    "exceptions": Table("exception_id", "EX", "shipment_id", ("open", "resolved")),
    "holds": Table("hold_id", "H", "shipment_id", ("active", "escalated", "cleared")),
    "entries": Table("entry_id", "CE", "shipment_id", ("draft", "submitted", "released", "cancelled")),
    "requirements": Table("requirement_id", "CR", "shipment_id", ("missing", "received", "waived")),
    "inspections": Table("inspection_id", "INS", "shipment_id", ("scheduled", "passed", "failed")),
    "hs_codes": Table("hs_code"),
    "customs_offices": Table("office_code"),
    "invoices": Table("invoice_id", "INV", "account_id", ("draft", "sent", "overdue", "paid", "void")),
    "payments": Table("payment_id", "PAY", "invoice_id", ("received", "refunded")),
    "credit_notes": Table("credit_note_id", "CN", "invoice_id", ("issued",)),
    "disputes": Table("dispute_id", "DSP", "invoice_id", ("open", "resolved")),
    "quotes": Table("quote_id", "Q", "account_id", ("open", "accepted", "declined", "expired")),
    "rates": Table("rate_id", "RATE", "", ("active", "retired")),
    "surcharges": Table("surcharge_id", "SUR"),
    "bookings": Table("booking_id", "BK", "account_id", ("requested", "confirmed", "cancelled", "shipped")),
    "carriers": Table("carrier_id", "CAR", "", ("active", "suspended")),
    "carrier_services": Table("service_id", "SVC"),
    "sailings": Table("sailing_id", "SAIL", "", ("on_time", "delayed", "cancelled")),
    "lanes": Table("lane_id", "LANE", "", ("active", "disabled")),
    "ports": Table("locode"),
    "events": Table("event_id", "EV", "shipment_id"),
    "milestones": Table("milestone_id", "MS", "shipment_id", ("planned", "done")),
    "deliveries": Table("delivery_id", "POD", "shipment_id"),
    "containers": Table("container_no", "", "shipment_id"),
    "warehouses": Table("warehouse_id", "WH"),
    "lots": Table("lot_id", "LOT", "account_id", ("stored", "blocked", "released")),
    "appointments": Table("appointment_id", "DOCK", "shipment_id", ("booked", "cancelled")),
    "pick_lists": Table("pick_list_id", "PICK", "lot_id", ("open", "done")),
    "documents": Table("document_id", "DOC", "shipment_id", ("requested", "received", "approved", "rejected")),
    "templates": Table("template_id", "TPL"),
    "claims": Table("claim_id", "CL", "shipment_id", ("open", "settled", "rejected", "withdrawn")),
    "notes": Table("note_id", "NOTE", "shipment_id", ("draft", "published")),
    "notifications": Table("notification_id", "NTF", "account_id", ("sent", "failed")),
    "rules": Table("rule_id", "NR", "account_id"),
    "vehicles": Table("vehicle_id", "VEH", "", ("available", "in_use", "workshop", "retired")),
    "maintenance": Table("maintenance_id", "MNT", "", ("planned", "done")),
    "drivers": Table("driver_id", "DRV", "", ("available", "on_trip", "on_leave")),
    "trips": Table("trip_id", "TRIP", "", ("planned", "started", "completed", "cancelled")),
    "fuel": Table("fuel_id", "FUEL"),
    "screenings": Table("screening_id", "SCR", "", ("hit", "clear")),
    "denied_parties": Table("party_id", "DP"),
    "licences": Table("licence_id", "LIC", "", ("valid", "expired")),
    "dangerous_goods": Table("un_number"),
    "users": Table("user_id", "USR", "", ("active", "deactivated")),
    "audit": Table("audit_id", "AUD"),
    "settings": Table("setting"),
    "integrations": Table("integration_id", "", "", ("up", "down")),
}
TABLE_OF_KEY = {table.key: name for name, table in TABLES.items()}


class Records:
    """All tables. `path`: where to keep them between processes; None keeps them in memory alone."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        kept = path is not None and path.exists()
        source: dict[str, list[Record]] = json.loads(path.read_text("utf-8")) if kept and path else _seed()
        self._rows = {
            name: {row[table.key]: dict(row) for row in source.get(name, [])} for name, table in TABLES.items()
        }

    def rows(self, table: str) -> list[Record]:
        return list(self._rows[table].values())

    def where(self, table: str, **equal: Any) -> list[Record]:
        return [row for row in self.rows(table) if all(row.get(name) == value for name, value in equal.items())]

    def get(self, table: str, key: str) -> Record:
        """The record itself, to read or to change.

        Raises:
            DeskError: `not_found`.
        """
        row = self._rows[table].get(key)
        if row is None:
            raise DeskError("not_found", f"There is no {TABLES[table].key.removesuffix('_id')} {key}.")
        return row

    def add(self, table: str, record: Record) -> Record:
        """The new record with its id, numbered on from the highest one."""
        key, prefix = TABLES[table].key, TABLES[table].prefix
        last = max((int(name.split("-")[1]) for name in self._rows[table]), default=0)
        row = {key: f"{prefix}-{last + 1}"} | record | {"created_at": now()}
        self._rows[table][row[key]] = row
        return row

    def remove(self, table: str, key: str) -> Record:
        self.get(table, key)
        return self._rows[table].pop(key)

    def tenant_of(self, table: str, record: Record) -> str:
        """The tenant that owns a record; "" for the company's own."""
        through = TABLES[table].through
        if through in ("", "tenant"):
            return str(record.get("tenant", "")) if through else ""
        parent = TABLE_OF_KEY[through]
        return self.tenant_of(parent, self.get(parent, record[through]))

    def save(self) -> None:
        if self.path is None:
            return
        whole = {name: self.rows(name) for name in TABLES}
        draft = self.path.with_suffix(".tmp")
        draft.write_text(json.dumps(whole, indent=1), "utf-8")
        draft.replace(self.path)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _seed() -> dict[str, list[Record]]:
    tables: dict[str, list[Record]] = {}
    for path in sorted(SEED.glob("*.json")):
        tables |= json.loads(path.read_text("utf-8"))
    return tables
