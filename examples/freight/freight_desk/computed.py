"""What no single verb of `actions.py` can say: answers put together from several tables, and writes that touch two.

Every function takes the records and the arguments: valid under the tool's schema, and naming only ids that exist.
"""

from __future__ import annotations

import os
from datetime import date, timedelta
from typing import Any

from freight_desk.records import TABLES, DeskError, Record, Records, now

Arguments = dict[str, Any]
LEFT = ("delivered", "cancelled")
DESKS = {"CUSTOMS": "customs_desk", "BILLING": "billing_clerk"}
"""Kind of hold -> the role that answers for it; the manager for every other kind."""


# --- shipments and holds ----------------------------------------------------------------------------------------------


def shipment_parties(records: Records, arguments: Arguments) -> Record:
    shipment = records.get("shipments", arguments["shipment_id"])
    return {
        "shipment_id": shipment["shipment_id"],
        "account": records.get("accounts", shipment["account_id"]),
        "contacts": records.where("contacts", account_id=shipment["account_id"]),
        "carrier": records.get("carriers", shipment["carrier_id"]) if shipment.get("carrier_id") else None,
    }


def shipment_timeline(records: Records, arguments: Arguments) -> Record:
    of = {"shipment_id": arguments["shipment_id"]}
    lines = [{"at": row["happened_at"], "what": row["event_code"]} for row in records.where("events", **of)]
    lines += [{"at": row["placed_at"], "what": f"{row['kind']} hold placed"} for row in records.where("holds", **of)]
    lines += [{"at": row["created_at"], "what": row["exception_kind"]} for row in records.where("exceptions", **of)]
    return {"items": sorted(lines, key=lambda line: line["at"]), "total": len(lines)}


def shipment_reroute(records: Records, arguments: Arguments) -> Record:
    shipment = _underway(records, arguments["shipment_id"])
    records.get("ports", arguments["via"])
    shipment.update(via=arguments["via"], reroute_reason=arguments["reason"], updated_at=now())
    return shipment


def hold_place(records: Records, arguments: Arguments) -> Record:
    """Without a `kind` it is a billing hold: the billing desk's own tool takes no other."""
    shipment = _underway(records, arguments["shipment_id"])
    hold = records.add("holds", {"kind": "BILLING"} | arguments | {"status": "active", "placed_at": now()})
    shipment["status"] = "held"
    return hold


def hold_clear(records: Records, arguments: Arguments) -> Record:
    hold = records.get("holds", arguments["hold_id"])
    if hold["status"] == "cleared":
        raise DeskError("conflict", f"{hold['hold_id']} is cleared already.")
    hold.update(status="cleared", cleared_because=arguments["reason"], cleared_at=now())
    others = [row for row in records.where("holds", shipment_id=hold["shipment_id"]) if row["status"] != "cleared"]
    if not others:
        records.get("shipments", hold["shipment_id"])["status"] = "in_transit"
    return hold


def billing_hold_get(records: Records, arguments: Arguments) -> Record:
    """An empty list is a true answer: billing does not hold this shipment."""
    shipment = records.get("shipments", arguments["shipment_id"])
    holds = _open_holds(records, shipment["shipment_id"], "BILLING")
    unpaid = [row for row in records.where("invoices", account_id=shipment["account_id"]) if row["status"] == "overdue"]
    return {"shipment_id": shipment["shipment_id"], "holds": holds, "overdue_invoices": unpaid if holds else []}


def billing_hold_release(records: Records, arguments: Arguments) -> Record:
    if records.get("holds", arguments["hold_id"])["kind"] != "BILLING":
        raise DeskError("conflict", f"{arguments['hold_id']} is not a billing hold; billing cannot release it.")
    return hold_clear(records, arguments)


def open_holds_report(records: Records, arguments: Arguments) -> Record:  # noqa: ARG001 - one signature for all
    holds = [row for row in records.rows("holds") if row["status"] != "cleared"]
    return {"items": holds, "total": len(holds)}


# --- customs ----------------------------------------------------------------------------------------------------------


def customs_requirements(records: Records, arguments: Arguments) -> Record:
    shipment_id = arguments["shipment_id"]
    required = records.where("requirements", shipment_id=shipment_id)
    return {
        "shipment_id": shipment_id,
        "holds": _open_holds(records, shipment_id, "CUSTOMS"),
        "requirements": required,
        "n_missing": sum(row["status"] == "missing" for row in required),
    }


def customs_checklist(records: Records, arguments: Arguments) -> Record:
    """The checklist lives in the customs authority's system. When that is down, nobody knows what is on it."""
    down = os.environ.get("FREIGHT_CHECKLIST_DOWN") == "1"
    if down or records.get("integrations", "customs-checklist")["status"] != "up":
        raise DeskError(
            "unavailable", "The customs checklist service does not answer. This is not an empty checklist: try later."
        )
    country = records.get("shipments", arguments["shipment_id"])["destination"][:2]
    steps = [row for row in records.rows("customs_offices") if row["country"] == country]
    done = {row["document_type"] for row in records.where("documents", shipment_id=arguments["shipment_id"])}
    items = [{"step": step, "done": step in done} for row in steps for step in row["checklist"]]
    return {"items": items, "total": len(items)}


def duty_estimate(records: Records, arguments: Arguments) -> Record:
    code = records.get("hs_codes", arguments["hs_code"])
    duty = round(arguments["declared_value"] * code["duty_percent"] / 100, 2)
    return {"hs_code": code["hs_code"], "duty_percent": code["duty_percent"], "duty": duty}


# --- money ------------------------------------------------------------------------------------------------------------


def account_balance(records: Records, arguments: Arguments) -> Record:
    account = records.get("accounts", arguments["account_id"])
    unpaid = [
        row
        for row in records.where("invoices", account_id=account["account_id"])
        if row["status"] in ("sent", "overdue")
    ]
    owed = round(sum(row["open_amount"] for row in unpaid), 2)
    return {
        "account_id": account["account_id"],
        "owed": owed,
        "credit_limit": account["credit_limit"],
        "credit_left": round(account["credit_limit"] - owed, 2),
        "currency": account["currency"],
    }


def statement(records: Records, arguments: Arguments) -> Record:
    since = arguments.get("since", "0000-00-00")
    invoices = [
        row for row in records.where("invoices", account_id=arguments["account_id"]) if row["created_at"] >= since
    ]
    ids = {row["invoice_id"] for row in invoices}
    payments = [row for row in records.rows("payments") if row["invoice_id"] in ids]
    return account_balance(records, arguments) | {"invoices": invoices, "payments": payments}


def invoice_add_line(records: Records, arguments: Arguments) -> Record:
    invoice = records.get("invoices", arguments["invoice_id"])
    if invoice["status"] != "draft":
        raise DeskError("conflict", f"{invoice['invoice_id']} is {invoice['status']}; lines are added to drafts only.")
    invoice.setdefault("lines", []).append({"memo": arguments["memo"], "amount": arguments["amount"]})
    invoice["amount"] = round(invoice["amount"] + arguments["amount"], 2)
    invoice["open_amount"] = invoice["amount"]
    return invoice


def payment_record(records: Records, arguments: Arguments) -> Record:
    invoice = _reduce(records, arguments["invoice_id"], arguments["amount"])
    payment = records.add("payments", arguments | {"status": "received"})
    return payment | {"invoice_status": invoice["status"], "open_amount": invoice["open_amount"]}


def payment_refund(records: Records, arguments: Arguments) -> Record:
    payment = records.get("payments", arguments["payment_id"])
    if payment["status"] == "refunded":
        raise DeskError("conflict", f"{payment['payment_id']} is refunded already.")
    invoice = records.get("invoices", payment["invoice_id"])
    invoice.update(status="sent", open_amount=round(invoice["open_amount"] + payment["amount"], 2))
    payment.update(status="refunded", refund_reason=arguments["reason"])
    return payment


def credit_note_create(records: Records, arguments: Arguments) -> Record:
    _reduce(records, arguments["invoice_id"], arguments["amount"])
    return records.add("credit_notes", arguments | {"status": "issued"})


def quote_create(records: Records, arguments: Arguments) -> Record:
    rates = rate_search(records, arguments)["items"]
    if not rates:
        raise DeskError("not_found", f"There is no rate from {arguments['origin']} to {arguments['destination']}.")
    best = min(rates, key=lambda row: (row["price_per_kg"], row["rate_id"]))
    price = round(best["price_per_kg"] * arguments["weight_kg"], 2)
    until = (date.today() + timedelta(days=30)).isoformat()
    priced = {"rate_id": best["rate_id"], "price_eur": price, "valid_until": until, "status": "open"}
    return records.add("quotes", arguments | priced)


def quote_accept(records: Records, arguments: Arguments) -> Record:
    quote = records.get("quotes", arguments["quote_id"])
    if quote["status"] != "open":
        raise DeskError("conflict", f"{quote['quote_id']} is {quote['status']}; only an open quote can be accepted.")
    quote["status"] = "accepted"
    copied = {name: quote[name] for name in ("account_id", "origin", "destination", "mode", "weight_kg", "quote_id")}
    return {"quote": quote, "booking": records.add("bookings", copied | {"status": "requested"})}


def rate_search(records: Records, arguments: Arguments) -> Record:
    wanted = {name: arguments[name] for name in ("origin", "destination", "mode") if name in arguments}
    found = records.where("rates", status="active", **wanted)
    return {"items": found, "total": len(found)}


# --- bookings, carriers, tracking -------------------------------------------------------------------------------------


def booking_convert(records: Records, arguments: Arguments) -> Record:
    booking = records.get("bookings", arguments["booking_id"])
    if booking["status"] != "confirmed":
        raise DeskError("conflict", f"{booking['booking_id']} is {booking['status']}; confirm the booking first.")
    booking["status"] = "shipped"
    fields = ("account_id", "origin", "destination", "mode", "weight_kg", "carrier_id", "booking_id")
    copied = {name: booking[name] for name in fields if name in booking}
    return records.add("shipments", copied | {"status": "booked", "priority": "standard"})


def booking_cutoff(records: Records, arguments: Arguments) -> Record:
    booking = records.get("bookings", arguments["booking_id"])
    sailings = [
        row
        for row in records.where("sailings", origin=booking["origin"], destination=booking["destination"])
        if row["departs_on"] >= booking.get("ready_on", "")
    ]
    if not sailings:
        raise DeskError("not_found", f"No departure from {booking['origin']} to {booking['destination']} is scheduled.")
    first = min(sailings, key=lambda row: row["departs_on"])
    cutoff = date.fromisoformat(first["departs_on"]) - timedelta(days=2)
    return {"booking_id": booking["booking_id"], "sailing_id": first["sailing_id"], "cutoff_on": cutoff.isoformat()}


def carrier_scorecard(records: Records, arguments: Arguments) -> Record:
    moved = records.where("shipments", carrier_id=arguments["carrier_id"])
    ids = {row["shipment_id"] for row in moved}
    n_exceptions = sum(row["shipment_id"] in ids for row in records.rows("exceptions"))
    n_claims = sum(row["shipment_id"] in ids for row in records.rows("claims"))
    counts = {"n_shipments": len(moved), "n_exceptions": n_exceptions, "n_claims": n_claims}
    return {"carrier_id": arguments["carrier_id"]} | counts


def tracking_status(records: Records, arguments: Arguments) -> Record:
    shipment = records.get("shipments", arguments["shipment_id"])
    events = sorted(
        records.where("events", shipment_id=shipment["shipment_id"]), key=lambda row: str(row["happened_at"])
    )
    last = events[-1] if events else None
    return {"shipment_id": shipment["shipment_id"], "status": shipment["status"], "last_event": last}


def tracking_eta(records: Records, arguments: Arguments) -> Record:
    shipment = records.get("shipments", arguments["shipment_id"])
    known = {"shipment_id": shipment["shipment_id"], "eta": shipment.get("eta"), "firm": shipment["status"] != "held"}
    return known | {"why_not_firm": "" if known["firm"] else "The shipment is held."}


def delivery_record(records: Records, arguments: Arguments) -> Record:
    shipment = records.get("shipments", arguments["shipment_id"])
    if shipment["status"] != "in_transit":
        raise DeskError("conflict", f"{shipment['shipment_id']} is {shipment['status']}; it cannot be delivered.")
    shipment["status"] = "delivered"
    return records.add("deliveries", arguments)


# --- warehouse, papers ------------------------------------------------------------------------------------------------


def warehouse_capacity(records: Records, arguments: Arguments) -> Record:
    warehouse = records.get("warehouses", arguments["warehouse_id"])
    used = sum(row["quantity"] for row in records.where("lots", warehouse_id=warehouse["warehouse_id"]))
    places = warehouse["pallet_places"]
    return {"warehouse_id": warehouse["warehouse_id"], "pallet_places": places, "used": used, "free": places - used}


def storage_charge(records: Records, arguments: Arguments) -> Record:
    lot = records.get("lots", arguments["lot_id"])
    free = int(records.get("settings", "free_storage_days")["value"])
    days = max(0, (date.today() - date.fromisoformat(lot["created_at"][:10])).days - free)
    rate = records.get("warehouses", lot["warehouse_id"])["eur_per_unit_day"]
    return {"lot_id": lot["lot_id"], "charged_days": days, "charge_eur": round(days * rate * lot["quantity"], 2)}


def pick_list_complete(records: Records, arguments: Arguments) -> Record:
    pick = records.get("pick_lists", arguments["pick_list_id"])
    lot = records.get("lots", pick["lot_id"])
    if pick["status"] == "done" or lot["quantity"] < pick["quantity"]:
        raise DeskError("conflict", f"{pick['pick_list_id']} is done, or {lot['lot_id']} holds too few units.")
    lot["quantity"] -= pick["quantity"]
    pick["status"] = "done"
    return pick


def document_of_type(document_type: str) -> Any:
    def find(records: Records, arguments: Arguments) -> Record:
        found = records.where("documents", shipment_id=arguments["shipment_id"], document_type=document_type)
        if not found:
            words = document_type.replace("_", " ")
            raise DeskError("not_found", f"The file of {arguments['shipment_id']} has no {words}.")
        return found[-1]

    return find


def notification_send(records: Records, arguments: Arguments) -> Record:
    if records.get("accounts", arguments["account_id"])["status"] != "active":
        raise DeskError("conflict", f"{arguments['account_id']} is suspended; it gets no notifications.")
    return records.add("notifications", arguments | {"status": "sent"})


def notification_preview(records: Records, arguments: Arguments) -> Record:
    shipment = records.get("shipments", arguments["shipment_id"])
    template = records.get("templates", arguments["template_id"])
    words = {name: str(shipment.get(name, "")) for name in ("shipment_id", "status", "eta", "origin", "destination")}
    return {"subject": template["subject"].format(**words), "body": template["body"].format(**words)}


# --- fleet, network, compliance ---------------------------------------------------------------------------------------


def trip_crew(records: Records, arguments: Arguments) -> Record:
    trip = records.get("trips", arguments["trip_id"])
    driver = records.get("drivers", arguments["driver_id"])
    if driver["status"] != "available":
        raise DeskError("conflict", f"{driver['driver_id']} is {driver['status']}.")
    trip["driver_id"] = driver["driver_id"]
    driver["status"] = "on_trip"
    return trip


def trip_uncrew(records: Records, arguments: Arguments) -> Record:
    trip = records.get("trips", arguments["trip_id"])
    if not trip.get("driver_id"):
        raise DeskError("conflict", f"{trip['trip_id']} has no driver.")
    records.get("drivers", trip["driver_id"])["status"] = "available"
    trip["driver_id"] = ""
    return trip


def driver_hours(records: Records, arguments: Arguments) -> Record:
    driver = records.get("drivers", arguments["driver_id"])
    limit = int(records.get("settings", "driver_hours_per_week")["value"])
    left = limit - driver["hours_this_week"]
    return {"driver_id": driver["driver_id"], "hours_this_week": driver["hours_this_week"], "hours_left": left}


def transit_estimate(records: Records, arguments: Arguments) -> Record:
    wanted = {name: arguments[name] for name in ("origin", "destination", "mode") if name in arguments}
    lanes = records.where("lanes", status="active", **wanted)
    if not lanes:
        raise DeskError("not_found", f"We serve no lane from {arguments['origin']} to {arguments['destination']}.")
    fields = ("lane_id", "mode", "transit_days")
    return {"items": [{name: lane[name] for name in fields} for lane in lanes], "total": len(lanes)}


def sanctions_screen(records: Records, arguments: Arguments) -> Record:
    wanted = arguments["party"].casefold()
    hits = [row for row in records.rows("denied_parties") if row["name"].casefold() in wanted]
    found = {
        "party": arguments["party"],
        "status": "hit" if hits else "clear",
        "matches": [row["name"] for row in hits],
    }
    return records.add("screenings", found)


def dangerous_goods_check(records: Records, arguments: Arguments) -> Record:
    good = records.get("dangerous_goods", arguments["un_number"])
    return good | {"mode": arguments["mode"], "allowed": arguments["mode"] in good["allowed_modes"]}


def embargo_check(records: Records, arguments: Arguments) -> Record:
    listed = records.get("settings", "embargoed_countries")["value"].split(",")
    return {"country": arguments["country"], "embargoed": arguments["country"] in listed}


def owner_of_shipment(records: Records, arguments: Arguments) -> Record:
    """What a gate asks before it lets a call about a shipment through."""
    shipment = records.get("shipments", arguments["shipment_id"])
    return {"tenant": records.tenant_of("shipments", shipment)}


def owner_of_record(records: Records, arguments: Arguments) -> Record:
    """The same for a record of any table that belongs to a customer, and for a hold the role that answers for it.

    Ids are unique over all tables.
    """
    for name, table in TABLES.items():
        if table.through and (found := records.where(name, **{table.key: arguments["record_id"]})):
            owner = {"owner": DESKS.get(found[0]["kind"], "manager")} if name == "holds" else {}
            return {"tenant": records.tenant_of(name, found[0])} | owner
    raise DeskError("not_found", f"There is no record {arguments['record_id']} that belongs to a customer.")


# --- shared by the above ----------------------------------------------------------------------------------------------


def _underway(records: Records, shipment_id: str) -> Record:
    shipment = records.get("shipments", shipment_id)
    if shipment["status"] in LEFT:
        raise DeskError("conflict", f"{shipment_id} is {shipment['status']}; it cannot be changed any more.")
    return shipment


def _open_holds(records: Records, shipment_id: str, kind: str) -> list[Record]:
    found = records.where("holds", shipment_id=shipment_id, kind=kind)
    return [hold for hold in found if hold["status"] != "cleared"]


def _reduce(records: Records, invoice_id: str, amount: float) -> Record:
    invoice = records.get("invoices", invoice_id)
    if invoice["status"] not in ("sent", "overdue") or amount > invoice["open_amount"]:
        raise DeskError("conflict", f"{invoice_id} is {invoice['status']} with {invoice['open_amount']} open.")
    invoice["open_amount"] = round(invoice["open_amount"] - amount, 2)
    if invoice["open_amount"] == 0:
        invoice["status"] = "paid"
    return invoice
