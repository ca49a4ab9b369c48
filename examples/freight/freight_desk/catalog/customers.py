"""Customer accounts, contacts, addresses and notifications."""

from __future__ import annotations

from freight_desk import computed
from freight_desk.actions import Add, Change, Compute, Get, List, Move, Remove, Search
from freight_desk.tool import Tool

ACCOUNTS = (
    Tool(
        "account_get",
        "Get a customer account with its contacts, addresses, currency and payment terms.",
        Get("accounts", also=("contacts", "addresses")),
    ),
    Tool(
        "account_search",
        "Search all customer accounts of the company by name or city.",
        Search("accounts", fields=("name", "city")),
    ),
    Tool(
        "account_update",
        "Change name, country or language of a customer account.",
        Change("accounts", takes=("name", "country", "language")),
    ),
    Tool(
        "account_suspend",
        "Suspend a customer account: no new bookings, no notifications.",
        Move("accounts", to="suspended", allowed=("active",), needs=("reason",)),
        destructive=True,
    ),
    Tool(
        "account_reinstate",
        "Lift the suspension of a customer account.",
        Move("accounts", to="active", allowed=("suspended",), needs=("reason",)),
    ),
    Tool(
        "contact_list",
        "List the contact persons of an account.",
        List("contacts", by=("account_id",)),
    ),
    Tool(
        "contact_add",
        "Add a contact person to an account.",
        Add("contacts", needs=("account_id", "name", "email"), takes=("phone", "job", "language")),
    ),
    Tool(
        "contact_update",
        "Correct name, e-mail, telephone or job of a contact person.",
        Change("contacts", takes=("name", "email", "phone", "job", "language")),
    ),
    Tool(
        "contact_remove",
        "Remove a contact person who has left the customer.",
        Remove("contacts"),
        destructive=True,
    ),
    Tool(
        "address_list",
        "List the saved pick-up and delivery addresses of an account.",
        List("addresses", by=("account_id",), filters=("country",)),
    ),
    Tool(
        "address_add",
        "Save a pick-up or delivery address for an account.",
        Add("addresses", needs=("account_id", "street", "city", "postal_code", "country")),
    ),
)

NOTIFICATIONS = (
    Tool(
        "notification_list",
        "List the notifications that an account was sent.",
        List("notifications", by=("account_id",), filters=("status",)),
    ),
    Tool(
        "notification_send",
        "Send a message to the contacts of an account by e-mail. It leaves the company at once.",
        Compute(computed.notification_send, ("account_id", "subject", "body"), tables=("notifications",), writes=True),
        outside=True,
    ),
    Tool(
        "notification_preview",
        "Show how a template would read for a shipment, without sending it.",
        Compute(computed.notification_preview, ("shipment_id", "template_id"), tables=("shipments", "templates")),
    ),
    Tool(
        "notification_template_list",
        "List the templates for notifications to customers.",
        List("templates", filters=("language",)),
    ),
    Tool(
        "notification_template_get",
        "Get the subject and text of one template.",
        Get("templates"),
    ),
    Tool(
        "notification_rule_list",
        "List the rules by which an account is notified without anybody's doing.",
        List("rules", by=("account_id",)),
    ),
    Tool(
        "notification_rule_create",
        "Notify an account by itself whenever a certain event happens.",
        Add("rules", needs=("account_id", "event", "template_id")),
    ),
    Tool(
        "notification_rule_delete",
        "Delete a rule that notifies an account by itself.",
        Remove("rules"),
        destructive=True,
    ),
)

TOOLS = ACCOUNTS + NOTIFICATIONS
