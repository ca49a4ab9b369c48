"""What tools do: a few verbs, each good for any table. What no verb can say is in `computed.py`, behind `Compute`.

An action knows its arguments (`required`, `optional`), whether it writes, and which tables it touches, so that the
definition of a tool is derived from what it does and cannot drift from it. An empty list is an answer; a parent that
does not exist is an error. Everything is checked before anything is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from freight_desk.fields import FIELDS, Schema
from freight_desk.records import TABLE_OF_KEY, TABLES, DeskError, Record, Records, now

Names = tuple[str, ...]
Arguments = dict[str, Any]


class Action(Protocol):
    @property
    def required(self) -> Names: ...
    @property
    def optional(self) -> Names: ...
    @property
    def tables(self) -> Names: ...
    @property
    def writes(self) -> bool: ...
    @property
    def output(self) -> Schema | None: ...
    def run(self, records: Records, arguments: Arguments) -> Record: ...


@dataclass(frozen=True, slots=True)
class _OnTable:
    table: str
    writes = False

    @property
    def key(self) -> str:
        return TABLES[self.table].key

    @property
    def tables(self) -> Names:
        return (self.table,)

    @property
    def required(self) -> Names:
        return (self.key,)

    @property
    def optional(self) -> Names:
        return ()

    @property
    def output(self) -> Schema | None:
        known = {"type": "object", "properties": {self.key: {"type": "string"}}, "required": [self.key]}
        if TABLES[self.table].statuses:
            known["properties"] |= {"status": {"type": "string", "enum": list(TABLES[self.table].statuses)}}
        return known


@dataclass(frozen=True, slots=True)
class Get(_OnTable):
    """One record. `also`: tables whose records that belong to it come with it."""

    also: Names = ()

    @property
    def tables(self) -> Names:
        return (self.table, *self.also)

    def run(self, records: Records, arguments: Arguments) -> Record:
        key = arguments[self.key]
        related = {name: records.where(name, **{self.key: key}) for name in self.also}
        return records.get(self.table, key) | related


@dataclass(frozen=True, slots=True)
class List(_OnTable):
    """Records in the order of their ids. `by`: fields that must be given; `filters`: fields that may be."""

    by: Names = ()
    filters: Names = ()
    where: tuple[tuple[str, str], ...] = ()

    @property
    def required(self) -> Names:
        return self.by

    @property
    def optional(self) -> Names:
        return (*self.filters, "limit", "after")

    @property
    def output(self) -> Schema | None:
        return LIST_OUTPUT

    def run(self, records: Records, arguments: Arguments) -> Record:
        check_references(records, arguments)
        wanted = {name: arguments[name] for name in (*self.by, *self.filters) if name in arguments} | dict(self.where)
        return page(records.where(self.table, **wanted), self.key, arguments)


@dataclass(frozen=True, slots=True)
class Search(_OnTable):
    """Records in which every word of the query occurs. `fields`: where to look."""

    fields: Names = ()
    by: Names = ()

    @property
    def required(self) -> Names:
        return (*self.by, "query")

    @property
    def optional(self) -> Names:
        return ("limit", "after")

    @property
    def output(self) -> Schema | None:
        return LIST_OUTPUT

    def run(self, records: Records, arguments: Arguments) -> Record:
        check_references(records, arguments)
        words = arguments["query"].casefold().split()
        rows = records.where(self.table, **{name: arguments[name] for name in self.by})
        found = [row for row in rows if all(word in self._text(row) for word in words)]
        return page(found, self.key, arguments)

    def _text(self, row: Record) -> str:
        return " ".join(str(row.get(name, "")) for name in (self.key, *self.fields)).casefold()


@dataclass(frozen=True, slots=True)
class Add(_OnTable):
    """A new record. `needs`: fields that must be given; `takes`: fields that may be; `sets`: fixed values."""

    needs: Names = ()
    takes: Names = ()
    sets: tuple[tuple[str, Any], ...] = ()
    writes = True

    @property
    def required(self) -> Names:
        return self.needs

    @property
    def optional(self) -> Names:
        return self.takes

    def run(self, records: Records, arguments: Arguments) -> Record:
        check_references(records, arguments)
        return records.add(self.table, dict(self.sets) | arguments)


@dataclass(frozen=True, slots=True)
class Change(_OnTable):
    """A record with some fields replaced: all of `needs`, and at least one of `takes` where `needs` is empty."""

    needs: Names = ()
    takes: Names = ()
    writes = True

    @property
    def required(self) -> Names:
        return (self.key, *self.needs)

    @property
    def optional(self) -> Names:
        return self.takes

    def run(self, records: Records, arguments: Arguments) -> Record:
        check_references(records, arguments)
        row = records.get(self.table, arguments[self.key])
        row.update(arguments, updated_at=now())
        return row


@dataclass(frozen=True, slots=True)
class Move(_OnTable):
    """A record moved from one status to another. From any other status it is a conflict, and nothing changes."""

    to: str = ""
    allowed: Names = ()
    needs: Names = ()
    takes: Names = ()
    writes = True

    @property
    def required(self) -> Names:
        return (self.key, *self.needs)

    @property
    def optional(self) -> Names:
        return self.takes

    def run(self, records: Records, arguments: Arguments) -> Record:
        check_references(records, arguments)
        row = records.get(self.table, arguments[self.key])
        if row["status"] not in self.allowed:
            wanted = " or ".join(self.allowed)
            raise DeskError("conflict", f"{arguments[self.key]} is {row['status']}; it would have to be {wanted}.")
        row.update(arguments, status=self.to, updated_at=now())
        return row


@dataclass(frozen=True, slots=True)
class Remove(_OnTable):
    """The record that was deleted. `only`: the status in which it may be deleted; "" for any."""

    only: str = ""
    writes = True

    def run(self, records: Records, arguments: Arguments) -> Record:
        row = records.get(self.table, arguments[self.key])
        if self.only and row.get("status") != self.only:
            raise DeskError("conflict", f"{arguments[self.key]} is {row['status']}; only a {self.only} can be deleted.")
        return records.remove(self.table, arguments[self.key]) | {"deleted": True}


@dataclass(frozen=True, slots=True)
class Total(_OnTable):
    """Count, and sum of `measure`, for each value of `group`: a report over the whole company."""

    group: str = "status"
    measure: str = ""
    where: tuple[tuple[str, str], ...] = ()

    @property
    def required(self) -> Names:
        return ()

    @property
    def output(self) -> Schema | None:
        return LIST_OUTPUT

    def run(self, records: Records, arguments: Arguments) -> Record:  # noqa: ARG002 - the verbs share one signature
        groups: dict[str, list[Record]] = {}
        for row in records.where(self.table, **dict(self.where)):
            groups.setdefault(str(row.get(self.group, "none")), []).append(row)
        items = [self._line(name, rows) for name, rows in sorted(groups.items())]
        return {"items": items, "total": sum(item["count"] for item in items)}

    def _line(self, name: str, rows: list[Record]) -> Record:
        line: Record = {self.group: name, "count": len(rows)}
        if self.measure:
            line[f"sum_{self.measure}"] = round(sum(row.get(self.measure, 0) for row in rows), 2)
        return line


@dataclass(frozen=True, slots=True)
class Compute:
    """What a function of `computed.py` gives."""

    function: Callable[[Records, Arguments], Record]
    required: Names = ()
    optional: Names = ()
    tables: Names = ()
    writes: bool = False
    output: Schema | None = None

    def run(self, records: Records, arguments: Arguments) -> Record:
        check_references(records, arguments)
        return self.function(records, arguments)


LIST_OUTPUT: Schema = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"type": "object"}}, "total": {"type": "integer"}},
    "required": ["items", "total"],
}


def page(rows: list[Record], key: str, arguments: Arguments) -> Record:
    """One page of rows; `total` counts all of them, `next_after` is there when more follow."""
    ids = [str(row[key]) for row in rows]
    start = ids.index(arguments["after"]) + 1 if arguments.get("after") in ids else 0
    end = start + int(arguments.get("limit", 25))
    more = {"next_after": ids[end - 1]} if end < len(rows) else {}
    return {"items": rows[start:end], "total": len(rows)} | more


def check_references(records: Records, arguments: Arguments) -> None:
    """Every record that an argument names exists, so that an empty answer never hides a wrong id."""
    for name, value in arguments.items():
        if name in TABLE_OF_KEY:
            records.get(TABLE_OF_KEY[name], value)


def argument_schema(action: Action, name: str) -> Schema:
    """The schema of one argument; `status` takes the values that the action's table knows."""
    if name != "status":
        return FIELDS[name]
    statuses = TABLES[action.tables[0]].statuses
    return {"type": "string", "enum": list(statuses), "description": "Only records in this state."}
