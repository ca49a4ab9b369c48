"""A small shop for tests with a model: one caller who may use all of it, and one who may not refund."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.evals.models.vendor import LocalSender, Vendor
from tests.flow.worlds import World, tool
from toolcrib.cli.eval_model_door import GatewayDoor
from toolcrib.evals.cases import Case, case_of
from toolcrib.evals.models.anthropic_wire import AnthropicWire
from toolcrib.evals.models.asking import Asking, Kept
from toolcrib.evals.models.attempts import Attempt
from toolcrib.evals.models.openai_wire import OpenAIWire
from toolcrib.evals.models.prices import Price, Purse
from toolcrib.evals.models.protocol import Sender
from toolcrib.evals.models.run import Plan, Ran, Run
from toolcrib.evals.models.ways import Way, Ways
from toolcrib.evals.places import Place, place_of_crib

ORDER = {"order": {"type": "string"}}
SHOP = [
    tool("get_order", "Look up an order by its number.", properties=ORDER),
    tool("issue_refund", "Return money to a customer.", properties=ORDER | {"cents": {"type": "integer"}}),
    tool("delete_customer", "Erase a customer with everything known of them.", properties=ORDER),
]
MAIL = [
    tool("send_message", "Send an e-mail message to somebody.", properties={"to": {"type": "string"}}),
    tool("list_folders", "List the folders of a mailbox."),
]
for definition in SHOP:
    definition["inputSchema"] |= {"required": list(definition["inputSchema"]["properties"])}
ROWS: Sequence[Mapping[str, Any]] = (
    {"id": "look", "task": "look up the order by its number", "expect": [["shop.get_order"]]},
    {"id": "money", "task": "return money to the customer", "expect": [["shop.issue_refund"]]},
    {
        "id": "both",
        "task": "look up the order by its number, and send an e-mail message",
        "expect": [["shop.get_order"], ["mail.send_message"]],
    },
    {"id": "none", "task": "knit a scarf", "expect": None},
)
WIRES = {"anthropic": (AnthropicWire(), "/v1/messages"), "openai": (OpenAIWire(), "/responses")}
PRICE = Price(input_usd=1.0, output_usd=5.0, source="tests")
ALL_WAYS = (Way.ALL, Way.SEARCH, Way.TOOLCRIB, Way.SELECT)


def shop(folder: Path, **more: Any) -> World:
    """The shop's crib."""
    return World(folder, {"shop": SHOP, "mail": MAIL}, **more)


def cases(*rows: Mapping[str, Any]) -> tuple[Case, ...]:
    """Cases as a file would hold them."""
    return tuple(case_of(row, where=f"cases.jsonl:{number}") for number, row in enumerate(rows, start=1))


def asked(world: World, *rows: Mapping[str, Any]) -> Place:
    """The shop with these cases."""
    return place_of_crib(world.crib, cases(*rows), name="cases")


def runs(
    place: Place,
    folder: Path,
    *,
    wire: str = "anthropic",
    ways: Sequence[Way] = ALL_WAYS,
    repeat: int = 1,
    model: str = "m",
    vendor: Vendor | None = None,
    sender: Sender | None = None,
    replay: bool = False,
    budget_usd: float = 100.0,
    max_turns: int = 8,
    parallel: int = 1,
) -> tuple[Ran, Asking, Purse]:
    """A run against the vendor in this process."""
    spoken, path = WIRES[wire]
    local = sender or LocalSender(vendor or Vendor(), path)
    purse = Purse(PRICE, budget_usd=budget_usd)
    asking = Asking(
        spoken,
        None if replay else local,
        kept=Kept(folder / "answers"),
        purse=None if replay else purse,
        max_output=100,
        base_url="",
        wait=lambda _seconds: None,
    )
    plan = Plan(model=model, ways=tuple(ways), repeat=repeat, max_output=100, max_turns=max_turns)
    starts = {place.name: Ways(place, spoken, gateway=GatewayDoor)}
    return Run([place], starts, vendor=spoken, plan=plan).run(asking, parallel=parallel), asking, purse


def by_way(ran: Ran) -> dict[tuple[str, Way], Attempt]:
    """Attempts by case and way; of several repeats the last."""
    return {(one.case.case_id, one.way): one for one in ran.attempts}
