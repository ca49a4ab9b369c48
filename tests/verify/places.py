"""Folders to prove things in: a small shop, the freight example, a made-up company. Made once per test session."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

import toolcrib.cli.main  # noqa: F401 - registers all commands, which the command line's surface runs
from tests.flow.worlds import World, tool
from toolcrib.crib import Crib
from toolcrib.retrieval.calibration import Calibration
from toolcrib.retrieval.confidence import basis_of
from toolcrib.retrieval.dense import bundled_embedder
from toolcrib.retrieval.learning import Learned, Part

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


PAST_TOML = """
[[tools]]
match = "shop.send_invoice"
aliases = ["vault.list_keys", "shop.mail_invoice"]
[[tools]]
match = "vault.send_money"
aliases = ["vault.pay", "shop.pay"]
[[tools]]
match = "*.open_*"
status = "retired"
replaced_by = "vault.send_money"
[[tools]]
match = "shop.cancel_order"
status = "retired"
replaced_by = "vault.send_money"
[[tools]]
match = "shop.get_refund"
status = "deprecated"
replaced_by = "vault.get_orders"
"""
"""Old names of tools that are hidden or not, one of them a hidden tool's own; retired and deprecated tools."""


def shop(folder: Path, *, toml: str = SHOP_TOML) -> Path:
    """Five tools that anybody may use, four for those who hold a scope, one that waits for review."""
    world = World(folder, SHOP, toml=toml)
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


HARBOUR_TOML = """
[[tools]]
match = "*"
risk = "read"
[[tools]]
match = "*.audit_*"
required_scopes = ["vault"]
[retrieval]
learned = "taught"
calibration = "fitted.json"
"""
HARBOUR = {
    "desk": [
        tool("book_berth", "Book a berth for a cargo ship."),
        tool("move_berth", "Move a cargo ship to another berth."),
        tool("list_ships", "List the cargo ships that are due today."),
        tool("audit_bribes", "Find payments to officials that nobody can explain."),
        tool("audit_staff", "Read the personal files of the officials."),
    ],
    "crane": [
        tool("lift_crate", "Lift a crate of cargo from a ship."),
        tool("weigh_crate", "Weigh a crate of cargo."),
        tool("park_crane", "Park the crane away from all cargo."),
        tool("audit_falls", "Investigate why a load fell onto the quay."),
    ],
    "gate": [
        tool("admit_truck", "Admit a truck that fetches cargo."),
        tool("weigh_truck", "Weigh a truck with its cargo."),
        tool("close_gate", "Close the gate while cargo is moved."),
        tool("audit_thefts", "Compare what left the gate with what was paid."),
    ],
}


def harbour(folder: Path) -> Path:
    """Nine tools of three servers that anybody may use, four on the same servers for those who hold a scope.

    What was learned has a part for each of the two reaches, and confidence is calibrated.
    """
    world = World(folder, HARBOUR, toml=HARBOUR_TOML)
    pipeline = world.crib.pipeline()
    world.close()
    assert pipeline.index is not None
    everything = [(one.tool_id, one.digest) for one in pipeline.snapshot.tools]
    open_to_all = [row for row in everything if ".audit_" not in row[0]]
    model_id = pipeline.index.model_id
    parts = (
        taught(open_to_all, "crane.weigh_crate", model_id=model_id),
        taught(everything, "gate.weigh_truck", model_id=model_id),
    )
    Learned(parts=parts).write(folder / "taught")
    fitted = Calibration(
        basis=basis_of(model_id), slope=1.2, offset=-0.1, floor=0.02, false_refusal=0.02,
        n_answerable=40, n_unanswerable=10, made="",
    )  # fmt: skip
    fitted.write(folder / "fitted.json")
    (folder / "profiles").mkdir()
    for name, body in CALLERS.items():
        (folder / "profiles" / f"{name}.json").write_text(json.dumps(body), encoding="utf-8")
    return folder


def taught(tools: Sequence[tuple[str, str]], tool_id: str, *, model_id: str) -> Part:
    """A part over these tools that has requests come nearer to one of them."""
    dim = bundled_embedder().dim
    rows = sorted(tools)
    return Part(
        tenant="",
        tools=tuple(rows),
        model_id=model_id,
        pieces=np.zeros(0, dtype=np.int32),
        deltas=np.zeros((0, dim), dtype=np.int8),
        scales=np.zeros(0, dtype=np.float32),
        called=np.array([[row[0] for row in rows].index(tool_id)], dtype=np.int32),
        precedents=np.full((1, dim), 50, dtype=np.int8),
        lengths=np.ones(1, dtype=np.float32),
        base=np.full(dim, 0.05, dtype=np.float32),
        weight=5.0,
        n_requests=20,
        n_subjects=2,
    )


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
