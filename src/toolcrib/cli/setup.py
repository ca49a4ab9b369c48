"""`toolcrib init`: a commented starter, or the servers of a configuration that another client already has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli.shared import AsJson, app, folder, print_json, say
from toolcrib.errors import ConfigError
from toolcrib.policy.shipped import default_policy_text
from toolcrib.settings import import_mcp_servers, load_settings, starter_toml

_IGNORED = """# By `toolcrib init`: the configuration, the policy and the lock belong under version control, these not.
.toolcrib/
.toolcrib.lock.guard
*.pem
"""


@app.command(epilog="Example: toolcrib init --from ~/.cursor/mcp.json")
def init(
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Take over the servers of an mcpServers JSON (Claude Desktop, Claude Code, Cursor, VS Code); "
            "a relative path starts at the crib's folder.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write toolcrib.toml and policy.cedar into the crib's folder, and a .gitignore where there is none."""
    target = folder()
    toml, policy = target / "toolcrib.toml", target / "policy.cedar"
    there = [str(path) for path in (toml, policy) if path.exists()]
    if there and not force:
        raise ConfigError(
            f"{' and '.join(there)} {'exist' if len(there) > 1 else 'exists'} already",
            hint="use --force to replace what is there, or -C another folder",
        )
    text, taken, notes = starter_toml(target.resolve().name or "crib"), [], []
    if source is not None:
        imported = import_mcp_servers(_read((target / source.expanduser()).resolve()), source_name=str(source))
        text = starter_toml(target.resolve().name or "crib", servers_toml=imported.servers_toml)
        taken, notes = list(imported.taken), [f"{note.where}: {note.what}" for note in imported.notes]
    target.mkdir(parents=True, exist_ok=True)
    toml.write_text(text, encoding="utf-8")
    policy.write_text(default_policy_text(), encoding="utf-8")
    ignore = target / ".gitignore"
    written = [toml, policy] if ignore.exists() else [toml, policy, ignore]
    if ignore in written:
        ignore.write_text(_IGNORED, encoding="utf-8")
    settings = load_settings(target)
    if as_json:
        print_json({"written": [str(path) for path in written], "servers": taken, "notes": notes})
        return
    say(f"wrote {', '.join(str(path) for path in written)}")
    for server_id in taken:
        say(f"took over server {server_id}")
    for note in notes:
        say(f"note: {note}")
    for warning in settings.warnings:
        say(f"warning: {warning}")
    if not settings.servers:
        say(f"next: add a [[servers]] block to {toml}; the commented ones show how")
    say("next: toolcrib refresh, then toolcrib review")


def _read(source: Path) -> str:
    try:
        return source.read_text(encoding="utf-8")
    except OSError as fault:
        hint = "the path is relative to the crib's folder"
        raise ConfigError(f"cannot be read: {fault.strerror}", where=str(source), hint=hint) from fault
    except UnicodeDecodeError as fault:
        raise ConfigError("is not UTF-8 text", where=str(source)) from fault
