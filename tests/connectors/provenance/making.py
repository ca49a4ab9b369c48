"""Installed packages, made by hand: what pip, uv and npm leave on disk, without them."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"


def venv(place: Path) -> Path:
    """The interpreter of a virtual environment without packages."""
    base = Path(sys.executable).resolve()
    (place / "bin").mkdir(parents=True)
    (place / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    site(place).mkdir(parents=True)
    python = place / "bin" / "python"
    python.symlink_to(base)
    return python


def site(place: Path) -> Path:
    return place / "lib" / PYTHON / "site-packages"


def distribution(
    place: Path,
    files: dict[str, str],
    *,
    name: str = "greeter",
    version: str = "1.0.0",
    script: str = "",
    direct_url: dict[str, Any] | None = None,
    more: dict[str, str] | None = None,
) -> None:
    """Installs a distribution into a virtual environment. `more`: other files in its metadata."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    written = dict(files)
    written[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    written[f"{info}/INSTALLER"] = "pip\n"
    if script:
        written[f"{info}/entry_points.txt"] = f"[console_scripts]\n{script} = {name}:main\n"
        program = place / "bin" / script
        program.write_text(f"#!{place}/bin/python\nfrom {name} import main\nmain()\n")
        program.chmod(0o755)
    if direct_url is not None:
        written[f"{info}/direct_url.json"] = json.dumps(direct_url)
    for other, text in (more or {}).items():
        written[f"{info}/{other}"] = text
    rows = [write(site(place) / path, text) and _row(path, text) for path, text in written.items()]
    rows += [f"../../../bin/{script},sha256=whatever,9"] if script else []
    write(site(place) / info / "RECORD", "\n".join([*rows, f"{info}/RECORD,,"]) + "\n")


def write(path: Path, text: str) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True


def _row(path: str, text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(text.encode())}"


def npm_package(
    project: Path, name: str, *, version: str = "1.2.3", text: str = "1;\n", locked: bool = True, **manifest: Any
) -> Path:
    """Installs a package into a project's `node_modules`, with its command; the path of that command."""
    package = project / "node_modules" / name
    write(package / "package.json", json.dumps({"name": name, "version": version, **manifest}))
    write(package / "dist" / "index.js", text)
    command = project / "node_modules" / ".bin" / name.rpartition("/")[2]
    command.parent.mkdir(exist_ok=True)
    command.symlink_to(package / "dist" / "index.js")
    if locked:
        entry = {
            "version": version,
            "resolved": f"https://registry.npmjs.org/{name}/-/x-{version}.tgz",
            "integrity": integrity(version),
        }
        write(
            project / "node_modules" / ".package-lock.json",
            json.dumps({"lockfileVersion": 3, "packages": {f"node_modules/{name}": entry}}),
        )
    return command


def integrity(version: str) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(version.encode()).digest()).decode()
