"""Numbers as a Prometheus text file, for whoever collects them from disk (node exporter's textfile collector).

There is no endpoint: how many tools there are, and how many are withheld, is nothing that a caller may read (I1).

Above: `doctor.py`.

Source:
    Prometheus, exposition formats, text format 0.0.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from toolcrib.doctoring import Health, ServerHealth

_STATES = ("fresh", "partial", "stale", "missing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One metric. `values`: labels with the number under them."""

    name: str
    help: str
    values: Sequence[tuple[Mapping[str, str], float]]


def gauges(health: Health) -> Iterator[Gauge]:
    """What doctor found, in numbers."""
    servers = health.servers
    yield _one("toolcrib_well", "Whether toolcrib doctor found nothing wrong.", health.is_well)
    yield Gauge(
        name="toolcrib_server_state",
        help="Which state each server's list is in: 1 for that one, 0 for the others.",
        values=[({"server": s.server_id, "state": state}, s.state == state) for s in servers for state in _STATES],
    )
    yield Gauge(
        name="toolcrib_list_age_seconds",
        help="Seconds since the server's list was taken.",
        values=[({"server": s.server_id}, s.age_s) for s in servers if s.age_s is not None],
    )
    yield Gauge(
        name="toolcrib_provenance_ok",
        help="Whether what runs behind the server is what was approved, where something is known of it.",
        values=[({"server": s.server_id}, s.provenance != "changed") for s in servers if s.provenance != "unknown"],
    )
    yield Gauge(
        name="toolcrib_reconfigured",
        help="Whether the configuration says something else of the server than when its list was taken.",
        values=[({"server": s.server_id}, bool(s.reconfigured)) for s in servers],
    )
    yield Gauge(
        name="toolcrib_launcher_pinned",
        help="Whether the server's next start cannot fetch another version, where that is known.",
        values=[({"server": s.server_id}, s.launcher_pinned) for s in servers if s.launcher_pinned is not None],
    )
    yield Gauge(
        name="toolcrib_tools",
        help="Tools in service, and withheld ones by code.",
        values=[({"server": s.server_id, "code": code}, number) for s in servers for code, number in _by_code(s)],
    )
    if health.chain is not None:
        yield _one("toolcrib_review_chain_ok", "Whether the approval log is as it was written.", health.chain.is_sound)
        yield _one("toolcrib_reviews", "Decisions in the approval log.", health.chain.n_events)
    wrong = sum(check.state == "wrong" for check in health.checks)
    yield _one("toolcrib_checks_wrong", "Checks of toolcrib doctor that found something wrong, servers apart.", wrong)
    yield _one("toolcrib_servers_wrong", "Servers that something is wrong with.", sum(s.is_wrong for s in servers))


def exposition(found: Iterable[Gauge]) -> str:
    """The text, metric by metric, in the order given."""
    lines: list[str] = []
    for gauge in found:
        lines += [f"# HELP {gauge.name} {_escaped(gauge.help, quotes=False)}", f"# TYPE {gauge.name} gauge"]
        for labels, value in gauge.values:
            inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            lines.append(f"{gauge.name}{'{' + inside + '}' if inside else ''} {float(value):.12g}")
    return "\n".join(lines) + "\n"


def _one(name: str, text: str, value: float) -> Gauge:
    return Gauge(name=name, help=text, values=[({}, value)])


def _by_code(server: ServerHealth) -> list[tuple[str, int]]:
    return [("in_service", server.n_in_service), *sorted(server.withheld.items())]


def _escaped(text: str, *, quotes: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
