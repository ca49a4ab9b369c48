"""Folders to prove things in: a small shop, the freight example, a made-up company. Made once per test session."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import toolcrib.cli.main  # noqa: F401 - registers all commands, which the command line's surface runs
from tests.flow.worlds import World, tool
from toolcrib.crib import Crib

ROOT = Path(__file__).parents[2]
LISTS = ROOT.parent / "shared" / "data" / "real_servers"

SHOP_TOML = """
[[tools]]
match = "shop.*"
risk = "read"
namespace = "orders"
[[tools]]
match = "vault.*"
risk = "read"
required_scopes = ["vault"]
namespace = "vault"
[[tools]]
match = "shop.get_*"
preload = true
"""
SHOP = {
    "shop": [
        tool("get_order", "Get one order of a customer.", properties={"order_id": {"type": "string"}}),
        tool("get_refund", "Get the state of a refund.", properties={"refund_id": {"type": "string"}}),
        tool("send_invoice", "Send an invoice to a customer."),
        tool("list_parcels", "List the parcels of an order."),
        tool("cancel_order", "Cancel an order that was not sent yet."),
    ],
    "vault": [
        tool("get_orders", "Get all orders of all customers of the vault."),
        tool("open_safe", "Open the safe and count the money."),
        tool("list_keys", "List the keys of the vault."),
        tool("send_money", "Send money from the vault to a customer."),
    ],
}
CALLERS = {"ann": {"subject": "ann", "environment": "test"}, "val": {"subject": "val", "scopes": ["vault"]}}


def shop(folder: Path) -> Path:
    """Five tools that anybody may use, four for those who hold a scope, one that waits for review."""
    world = World(folder, SHOP, toml=SHOP_TOML)
    waiting = tool("get_bonus", "Get the bonus of an order.")
    world.write("shop", [*SHOP["shop"], waiting])
    world.refresh()
    world.close()
    (folder / "profiles").mkdir()
    for name, body in CALLERS.items():
        (folder / "profiles" / f"{name}.json").write_text(json.dumps(body), encoding="utf-8")
    return folder


ARCHIVE_POLICY = """@id("all") permit (principal, action, resource);
@id("look-only") forbid (principal, action == Action::"call", resource in Namespace::"archive")
unless { principal in Role::"root" };
"""
ARCHIVE_TOML = """
[[tools]]
match = "desk.*"
risk = "read"
namespace = "orders"
[[tools]]
match = "archive.*"
risk = "read"
namespace = "archive"
regions = ["eu"]
"""
ARCHIVE = {
    "desk": [tool("get_order", "Get one order of a customer."), tool("list_parcels", "List the parcels of an order.")],
    "archive": [tool("shred_parchment", "Shred medieval parchment."), tool("bind_folio", "Bind loose folio pages.")],
}


def archive(folder: Path, callers: Mapping[str, Mapping[str, object]]) -> Path:
    """Two tools that anybody may use; two that policy shows to all and lets only root call, and only in one region."""
    World(folder, ARCHIVE, toml=ARCHIVE_TOML, policy=ARCHIVE_POLICY).close()
    (folder / "profiles").mkdir()
    for name, body in callers.items():
        (folder / "profiles" / f"{name}.json").write_text(json.dumps({"subject": name, **body}), encoding="utf-8")
    return folder


def freight(folder: Path) -> Path:
    """The freight example with its own server's tools, all approved."""
    shutil.copytree(ROOT / "examples" / "freight", folder, dirs_exist_ok=True)
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))  # finds `python3`
    return approved(folder)


def approved(folder: Path) -> Path:
    """The crib of this folder, refreshed and approved."""

    async def work() -> None:
        async with Crib.open(folder) as crib:
            report = await crib.refresh()
            assert report.failed == {}
            crib.approve(None, reviewer="tests")

    asyncio.run(work())
    return folder


def company_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("toolcrib_company_script", ROOT / "scripts" / "company.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
