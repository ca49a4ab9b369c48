"""A made-up company over real tools: 4 tenants, 12 roles, 3 stages, 3 environments, and who may use what.

    python scripts/company.py SERVERS FOLDER      SERVERS: a folder of `*.tools.json`, or - for a small made-up catalog

Writes a crib: toolcrib.toml, policy.cedar, profiles/*.json (432 callers, one per combination). Then, in FOLDER:
`toolcrib refresh`, `toolcrib approve --all`, `toolcrib verify isolation`.

    department   a server belongs to one of 12; its namespace. A role may use its own department's and two others'
    tenant       every third server is for one or two tenants only
    stage        tools that delete, remove, stop ... are for the stage `resolution`
    environment  tools that create, update, send ... are not for `development`; every seventh server is for one only
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any

from toolcrib.policy.shipped import default_policy_text

TENANTS = ("northwind", "baltic", "meridian", "southern")
STAGES = ("triage", "investigation", "resolution")
ENVIRONMENTS = ("development", "staging", "production")
DEPARTMENTS = (
    "platform",
    "data",
    "support",
    "sales",
    "finance",
    "legal",
    "people",
    "marketing",
    "security",
    "research",
    "operations",
    "design",
)
ROLES = tuple(f"{department}-member" for department in DEPARTMENTS)
_RISKY = ("*delete*", "*remove*", "*stop*", "*drop*", "*purge*")
_WRITING = ("*create*", "*update*", "*send*", "*write*")
_VERBS = ("get", "list", "search", "create", "update", "delete", "send", "stop")
_THINGS = (
    "invoice",
    "ticket",
    "contract",
    "dashboard",
    "backup",
    "campaign",
    "candidate",
    "shipment",
    "policy",
    "note",
)


def write_company(folder: Path, servers: dict[str, Path]) -> Path:
    """The crib of the company over these servers (server id -> file); the folder.

    Args:
        folder: made if it is not there.
    """
    (folder / "profiles").mkdir(parents=True, exist_ok=True)
    (folder / "toolcrib.toml").write_text(_toml(servers), encoding="utf-8")
    (folder / "policy.cedar").write_text(_policy(), encoding="utf-8")
    for name, body in profiles().items():
        (folder / "profiles" / f"{name}.json").write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    return folder


def real_servers(folder: Path) -> dict[str, Path]:
    """The published lists in a folder: server id -> file."""
    return {file.name.removesuffix(".tools.json"): file.resolve() for file in sorted(folder.glob("*.tools.json"))}


def made_up_servers(folder: Path, *, n_servers: int = 24) -> dict[str, Path]:
    """A small catalog, written into the folder: 24 servers of 10 tools each."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for number in range(n_servers):
        names = [(_VERBS[(number + k) % len(_VERBS)], _THINGS[(3 * number + k) % len(_THINGS)]) for k in range(10)]
        tools = [
            {
                "name": f"{verb}_{thing}",
                "description": f"{verb.capitalize()} one {thing} of the {DEPARTMENTS[number % 12]} department.",
                "inputSchema": {"type": "object", "properties": {f"{thing}_id": {"type": "string"}}},
            }
            for verb, thing in dict.fromkeys(names)
        ]
        file = folder / f"desk{number:02}.tools.json"
        file.write_text(json.dumps({"tools": tools}), encoding="utf-8")
        found[f"desk{number:02}"] = file.resolve()
    return found


def profiles() -> dict[str, dict[str, Any]]:
    """All 432 callers by name."""
    return {
        f"{tenant}-{role}-{stage}-{environment}": {
            "subject": f"{role}@{tenant}",
            "tenant": tenant,
            "roles": [role],
            "stage": stage,
            "environment": environment,
        }
        for tenant, role, stage, environment in product(TENANTS, ROLES, STAGES, ENVIRONMENTS)
    }


def departments_of(role: str) -> tuple[str, ...]:
    """The departments whose tools this role may use: its own, the next, and one on the other side of the house."""
    place = ROLES.index(role)
    return tuple(DEPARTMENTS[(place + step) % len(DEPARTMENTS)] for step in (0, 1, 6))


def _toml(servers: dict[str, Path]) -> str:
    rows = ['[crib]\nname = "company"\nenvironment = "production"\npolicy = "policy.cedar"\n']
    for number, (server_id, file) in enumerate(servers.items()):
        text = json.dumps
        rows.append(f'[[servers]]\nid = {text(server_id)}\ntransport = "file"\npath = {text(str(file))}\n')
        row = {"namespace": DEPARTMENTS[number % len(DEPARTMENTS)], "preload": False}
        if number % 3 == 0:
            row["tenants"] = sorted({TENANTS[number % 4], TENANTS[(number // 3) % 4]})
        if number % 7 == 0:
            row["environments"] = [ENVIRONMENTS[number % 3]]
        rows.append(_row(f"{server_id}.*", row))
    rows += [_row(glob, {"stages": ["resolution"], "risk": "destructive"}) for glob in _RISKY]
    rows += [_row(glob, {"environments": ["staging", "production"], "risk": "write"}) for glob in _WRITING]
    rows.append(_row("*.*list*", {"preload": True}))
    return "\n".join(rows)


def _row(glob: str, fields: dict[str, Any]) -> str:
    return "\n".join(
        ["[[tools]]", f"match = {json.dumps(glob)}", *(f"{k} = {json.dumps(v)}" for k, v in fields.items()), ""]
    )


def _policy() -> str:
    """The default policy, and for each department a rule that only the roles with access pass."""
    rules = [default_policy_text()]
    for department in DEPARTMENTS:
        allowed = [f'principal in Role::"{role}"' for role in ROLES if department in departments_of(role)]
        rules.append(
            f'@id("department-{department}")\n'
            f'forbid (principal, action, resource in Namespace::"{department}")\n'
            f"unless {{ {' || '.join(allowed)} }};\n"
        )
    return "\n".join(rules)


def main() -> None:
    """Write the company's crib."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers")
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    folder = given.folder
    servers = made_up_servers(folder / "servers") if given.servers == "-" else real_servers(Path(given.servers))
    write_company(folder, servers)
    print(f"{len(servers)} servers, {len(profiles())} callers in {folder}")


if __name__ == "__main__":
    main()
