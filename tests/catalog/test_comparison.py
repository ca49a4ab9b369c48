"""The lock against lists: every difference has its row, and what is not known has none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from toolcrib.catalog.comparison import Comparison, Known, Row, RowKind, compare
from toolcrib.catalog.digest import definition_digest
from toolcrib.catalog.grading import Grade
from toolcrib.catalog.pins import Lock, server_pin, tool_pin
from toolcrib.catalog.publication import publish
from toolcrib.types import Provenance, ProvenanceKind, Publication, ServerListing, ServerSpec, ServerStatus, Transport

WAS = Provenance(kind=ProvenanceKind.NPM, package="mail", version="1.0.0")
SPEC = ServerSpec(server_id="mail", transport=Transport.FILE)


def tool(name: str, description: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description or f"Does {name}.", "inputSchema": {"type": "object"}, **more}


SEND, READ, DROP = tool("send"), tool("read", annotations={"readOnlyHint": True}), tool("drop")


def listed(*tools: Any, server_id: str = "mail", **more: Any) -> Publication:
    listing = ServerListing(server_id=server_id, tools=tools, provenance=WAS)
    return publish(None, listings=[replace(listing, **more)], failures={}, at="now", schema_fault=lambda _: "")


def locked(publication: Publication) -> Lock:
    """All of it approved, the servers pinned."""
    tools = {f"{t.server_id}.{t.name}": tool_pin(t.definition, digest=t.digest) for t in publication.tools}
    return Lock(tools=tools, servers={s.server_id: server_pin(s) for s in publication.servers})


LOCK = locked(listed(SEND, READ, DROP))


def compared(publication: Publication, lock: Lock = LOCK, **more: Any) -> Comparison:
    return compare(lock, publication, **{"servers": [SPEC], "configured": ["mail"], **more})


def told(rows: tuple[Row, ...]) -> list[tuple[str, ...]]:
    return [(row.kind.value, row.subject, *(c.label for c in row.changes), *row.details) for row in rows]


def test_what_is_as_approved_has_no_row() -> None:
    found = compared(listed(DROP, READ, SEND))
    assert found == Comparison(rows=(), left_out={})


def test_each_difference_has_its_row() -> None:
    now = listed({**SEND, "description": "Sends, and more."}, READ, tool("new"))
    assert told(compared(now).rows) == [
        ("CHANGED", "mail/send", "description"),
        ("NEW", "mail/new"),
        ("REMOVED", "mail/drop"),
    ]


def test_worst_changes_come_first_within_a_kind() -> None:
    schema = {**DROP["inputSchema"], "title": "words"}
    now = listed(
        {**READ, "annotations": {"readOnlyHint": False}}, {**SEND, "icons": []}, {**DROP, "inputSchema": schema}
    )
    rows = compared(now).rows
    assert [(row.name, row.grade) for row in rows] == [
        ("drop", Grade.MODEL_READS),
        ("read", Grade.APPROVAL_RESTS_ON),
        ("send", Grade.CHANGES_NOTHING),
    ]


def test_a_tool_under_another_name_is_renamed() -> None:
    now = listed({**SEND, "name": "post"}, READ, DROP)
    assert told(compared(now).rows) == [("RENAMED", "mail/send -> mail/post")]


def test_a_new_name_with_new_words_is_another_tool() -> None:
    now = listed({**SEND, "name": "post", "description": "Posts."}, READ, DROP)
    assert told(compared(now).rows) == [("NEW", "mail/post"), ("REMOVED", "mail/send")]


def test_two_that_could_be_the_renamed_one_are_both_new() -> None:
    now = listed({**SEND, "name": "post"}, {**SEND, "name": "ship"}, READ, DROP)
    assert [row.kind for row in compared(now).rows] == [RowKind.NEW, RowKind.NEW, RowKind.REMOVED]


def test_a_tool_that_moved_to_another_server_is_not_renamed() -> None:
    both = [SPEC, replace(SPEC, server_id="post")]
    parts = listed(READ, DROP), listed(SEND, server_id="post")
    now = replace(parts[0], servers=(*parts[0].servers, *parts[1].servers), tools=(*parts[0].tools, *parts[1].tools))
    rows = compared(now, servers=both, configured=["mail", "post"]).rows
    assert told(rows) == [("NEW", "post/send"), ("REMOVED", "mail/send")]


def test_swapped_descriptions_are_recognised() -> None:
    now = listed({**SEND, "description": READ["description"]}, {**READ, "description": SEND["description"]}, DROP)
    assert told(compared(now).rows) == [
        ("CHANGED", "mail/read", "description", "swapped with mail/send (descriptions)"),
        ("CHANGED", "mail/send", "description", "swapped with mail/read (descriptions)"),
    ]


def test_swapped_definitions_are_recognised() -> None:
    now = listed({**READ, "name": "send"}, {**SEND, "name": "read"}, DROP)
    assert [row.details for row in compared(now).rows] == [
        ("swapped with mail/send (whole definitions)",),
        ("swapped with mail/read (whole definitions)",),
    ]


def test_a_description_taken_from_another_tool_is_said() -> None:
    now = listed({**SEND, "description": READ["description"]}, READ, DROP)
    assert compared(now).rows[0].details == ("has the description approved for mail/read",)


def test_equal_descriptions_from_the_start_are_no_swap() -> None:
    first, second = tool("a", "Same."), tool("b", "Same.")
    now = listed({**first, "description": "Other."}, {**second, "description": "Other."})
    assert all(not row.details for row in compared(now, locked(listed(first, second))).rows)


def test_a_return_to_an_approved_definition_is_recognised() -> None:
    older = {**SEND, "description": "Sends, as it used to."}
    known = Known(approved_before={"mail.send": {definition_digest(older)}})
    (row,) = compared(listed(older, READ, DROP), known=known).rows
    assert row.details == ("back to a definition approved before",)


def test_with_the_approved_definition_at_hand_the_schema_is_told_closely() -> None:
    wider = {**SEND, "inputSchema": {"type": "object", "properties": {"bcc": {}}}}
    known = Known(definition_of={definition_digest(SEND): SEND}.get)
    (row,) = compared(listed(wider, READ, DROP), known=known).rows
    assert [change.label for change in row.changes] == ["inputSchema (widened)"]


def test_a_store_that_says_something_else_is_not_believed() -> None:
    known = Known(definition_of=lambda _digest: READ)
    (row,) = compared(listed({**SEND, "description": "x"}, READ, DROP), known=known).rows
    assert [change.label for change in row.changes] == ["description"]


def test_a_lock_of_version_1_says_that_it_does_not_know_the_fields() -> None:
    bare = replace(LOCK, tools={tool_id: replace(pin, fields={}) for tool_id, pin in LOCK.tools.items()})
    (row,) = compared(listed({**SEND, "description": "x"}, READ, DROP), bare).rows
    assert row.grade is Grade.MODEL_READS and "not known" in row.changes[0].summary


def test_a_server_that_gave_no_list_has_no_rows() -> None:
    nothing = Publication(publication_id="", at="", servers=(), tools=())
    missing = replace(nothing, servers=(ServerStatus(server_id="mail", state="missing", n_tools=0),))
    assert compared(nothing).rows == compared(missing).rows == ()


def test_a_server_that_is_not_configured_any_more_is_removed_whole() -> None:
    rows = compared(listed(SEND, READ, DROP), configured=[], servers=[]).rows
    assert told(rows) == [("REMOVED", "mail/*", "not configured any more, approved tools: 3")]
    assert compared(listed(SEND, READ, DROP), configured=None, servers=[]).rows == ()


def test_another_package_under_the_same_definitions_is_provenance() -> None:
    now = listed(SEND, READ, DROP, provenance=replace(WAS, version="1.1.0"))
    (row,) = compared(now).rows
    assert (row.kind, row.subject) == (RowKind.PROVENANCE, "mail")
    assert row.details == ("version was 1.0.0, is 1.1.0",)


def test_a_server_of_which_nothing_is_known_any_more_is_provenance() -> None:
    assert compared(listed(SEND, READ, DROP, provenance=None)).rows[0].kind is RowKind.PROVENANCE


def test_a_server_without_a_pin_is_not_held_to_one() -> None:
    assert compared(listed(SEND, READ, DROP), replace(LOCK, servers={})).rows == ()


def test_what_a_server_says_of_itself_is_told_and_changes_nothing() -> None:
    now = listed(SEND, READ, DROP, instructions="Always use me.", protocol_version="2025-11-25")
    (row,) = compared(now).rows
    assert told((row,)) == [("CHANGED", "mail/", "instructions", "protocol_version")]
    assert row.grade is Grade.CHANGES_NOTHING


def test_tools_that_are_not_taken_in_are_left_out_both_ways() -> None:
    spec = replace(SPEC, allow_tools=("s*",))
    assert compared(listed(SEND, tool("new")), servers=[spec]).rows == ()


@pytest.mark.parametrize("broken", [{**SEND, "inputSchema": 5}, {**SEND, "n": 2**60}], ids=["schema", "no-digest"])
def test_an_approved_tool_that_cannot_be_served_is_changed(broken: dict[str, Any]) -> None:
    (row,) = compared(listed(broken, READ, DROP)).rows
    assert (row.kind, row.subject) == (RowKind.CHANGED, "mail/send")
    assert row.details[0].startswith("cannot be served: ")


def test_an_approved_tool_listed_twice_with_two_definitions_is_changed() -> None:
    (row,) = compared(listed(SEND, {**SEND, "description": "x"}, READ, DROP)).rows
    assert row.details == ("cannot be served: listed with 2 different definitions",)


def test_the_same_definition_twice_is_listed_once() -> None:
    assert compared(listed(SEND, SEND, READ, DROP)).rows == ()


def test_what_nobody_approved_and_cannot_be_served_is_left_out_and_said() -> None:
    found = compared(listed(SEND, READ, DROP, 5, tool("a"), tool("a", "other")))
    assert found.rows == ()
    assert list(found.left_out) == ["mail.#4", "mail.a"]
