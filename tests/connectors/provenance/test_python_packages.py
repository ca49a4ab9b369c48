"""A Python package as it lies on disk."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from toolcrib.connectors.provenance import content
from toolcrib.connectors.provenance.content import NotTold
from toolcrib.connectors.provenance.python_packages import (
    described,
    named,
    site_directories,
    with_module,
    with_script,
)

from .making import distribution, site, venv, write

FILES = {"greeter/__init__.py": "def main(): ...\n", "greeter/__main__.py": "", "greeter/data.json": "{}"}


def of(place: Path):
    return described(named("greeter", [site(place)]))


def installed(place: Path, files: dict[str, str] = FILES, **more) -> Path:
    venv(place)
    distribution(place, files, **more)
    return place


def test_two_versions_differ_and_one_version_is_the_same_everywhere(tmp_path):
    first = of(installed(tmp_path / "a", script="greeter"))
    same = of(installed(tmp_path / "somewhere" / "else", script="greeter"))
    later = of(installed(tmp_path / "b", {**FILES, "greeter/__init__.py": "def main(): 1\n"}, version="1.1.0"))
    assert first.compared == same.compared
    assert (first.package, first.version, first.registry) == ("greeter", "1.0.0", "pypi")
    assert (later.version, later.integrity == first.integrity) == ("1.1.0", False)


@pytest.mark.parametrize(
    "path",
    ["greeter/__init__.py", "greeter/data.json", "greeter/extra.py", "greeter/server.so", "greeter/evil.pyc"],
)
def test_an_edited_or_added_file_is_seen_although_record_is_not(tmp_path, path):
    place = installed(tmp_path / "a")
    before = of(place)
    write(site(place) / path, "changed")
    assert of(place).integrity != before.integrity


@pytest.mark.parametrize(
    "path",
    [
        "greeter/__pycache__/x.cpython-311.pyc",
        "greeter/cache.txt",
        "other/__init__.py",
        "greeter-1.0.0.dist-info/REQUESTED",
    ],
)
def test_caches_and_what_others_wrote_change_nothing(tmp_path, path):
    place = installed(tmp_path / "a")
    before = of(place)
    write(site(place) / path, "new")
    assert of(place).compared == before.compared


def test_a_removed_file_cannot_be_read_and_is_told(tmp_path):
    place = installed(tmp_path / "a")
    (site(place) / "greeter/data.json").unlink()
    with pytest.raises(NotTold, match=r"data\.json"):
        of(place)


def test_a_directory_that_distributions_share_is_read_by_record_alone(tmp_path):
    place = installed(tmp_path / "a", {"shared/greeter.py": ""})
    before = of(place)
    write(site(place) / "shared/other.py", "another distribution's")
    assert of(place).integrity == before.integrity


def test_what_is_too_large_to_read_is_compared_by_its_record(tmp_path, monkeypatch):
    monkeypatch.setattr(content, "MAX_BYTES", 10)
    first = of(installed(tmp_path / "a"))
    other = of(installed(tmp_path / "b", {**FILES, "greeter/__init__.py": "other\n"}))
    assert first.integrity.startswith("sha256:")
    assert first.integrity != other.integrity
    assert "RECORD" in first.note


def test_an_address_that_it_was_installed_from_is_its_registry(tmp_path):
    git = {"url": "https://git.example/o/greeter", "vcs_info": {"vcs": "git", "commit_id": "abc123"}}
    found = of(installed(tmp_path / "a", direct_url=git))
    assert (found.registry, found.advice) == ("git.example", "git+https://git.example/o/greeter@abc123")


def test_an_installation_in_place_is_its_sources(tmp_path):
    sources = tmp_path / "work"
    write(sources / "src/greeter/__init__.py", "1")
    write(sources / ".venv/lib/x.py", "not a source")
    (sources / ".venv/pyvenv.cfg").write_text("")
    url = {"url": sources.as_uri(), "dir_info": {"editable": True}}
    place = installed(tmp_path / "a", {"greeter.pth": str(sources)}, direct_url=url)
    before = of(place)
    write(sources / ".venv/lib/y.py", "still none")
    assert of(place).integrity == before.integrity
    write(sources / "src/greeter/more.py", "2")
    assert of(place).integrity != before.integrity
    assert with_module("greeter", [site(place)]).name == "greeter"


def test_a_publisher_is_read_from_a_provenance_object(tmp_path):
    told = {"version": 1, "attestation_bundles": [{"publisher": {"kind": "GitHub", "repository": "o/greeter"}}]}
    found = of(installed(tmp_path / "a", more={"greeter.provenance": json.dumps(told)}))
    assert found.publisher == "GitHub o/greeter"
    assert "not verified" in found.note
    assert of(installed(tmp_path / "b", more={"greeter.provenance": "[]"})).publisher == ""


def test_a_distribution_is_found_by_module_and_by_script(tmp_path):
    place = installed(tmp_path / "a", {"hello/__init__.py": "", "hello/server.py": ""}, script="say-hello")
    distribution(place, {"other/__init__.py": ""}, name="hello-tools")
    sites = [site(place)]
    assert with_module("hello.server", sites).name == "greeter"
    assert with_script("say-hello", sites).name == "greeter"
    assert named("Hello_Tools", sites).name == "hello-tools"
    assert with_module("absent", sites) is None
    assert with_script("absent", sites) is None


def test_an_environment_is_its_own_and_an_overlaid_one_has_two(tmp_path):
    below, above = venv(tmp_path / "below"), venv(tmp_path / "above")
    assert site_directories(above, env={}) == (site(tmp_path / "above"),)
    overlay = f'import site; site.addsitedir(__import__("os").fsdecode(b"{site(tmp_path / "below")}"))'
    (site(tmp_path / "above") / "_uv_ephemeral_overlay.pth").write_text(overlay)
    assert site_directories(above, env={}) == (site(tmp_path / "above"), site(tmp_path / "below"))
    assert below.exists()


def test_pythonpath_comes_first(tmp_path):
    python = venv(tmp_path / "a")
    (tmp_path / "first").mkdir()
    assert site_directories(python, env={"PYTHONPATH": str(tmp_path / "first")})[0] == tmp_path / "first"


def test_an_interpreter_without_environment_has_its_own_directory():
    base = Path(sys.executable).resolve()
    assert any(base.parent.parent in one.parents for one in site_directories(base, env={"HOME": "/nowhere"}))
