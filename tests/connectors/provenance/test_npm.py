"""A package of npm as it lies on disk, and where npx keeps it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from toolcrib.connectors.provenance.content import NotTold
from toolcrib.connectors.provenance.npm import described, npm_cache, npx_directory, npx_package, package_of

from .making import integrity, npm_package, write

NAME = "@scope/server"


def of(command: Path):
    return described(package_of(command.resolve()))


def test_a_command_leads_to_its_package_and_the_lock_says_its_hash(tmp_path):
    found = of(npm_package(tmp_path / "a", NAME))
    assert (found.package, found.version, found.registry) == (NAME, "1.2.3", "npm")
    assert found.integrity.split()[0] == integrity("1.2.3")
    assert found.compared == of(npm_package(tmp_path / "other" / "place", NAME)).compared
    assert found.publisher == ""
    assert "publisher" in found.note


def test_an_edited_file_is_seen_although_the_lock_is_the_same(tmp_path):
    command = npm_package(tmp_path, NAME)
    before = of(command)
    write(command.resolve(), "2;\n")
    assert of(command).integrity.split()[0] == before.integrity.split()[0]
    assert of(command).integrity != before.integrity


def test_packages_inside_it_are_not_it(tmp_path):
    command = npm_package(tmp_path, NAME)
    before = of(command)
    write(package_of(command.resolve()) / "node_modules/dep/index.js", "x")
    assert of(command).integrity == before.integrity


def test_a_package_that_builds_itself_has_the_published_hash_alone(tmp_path):
    command = npm_package(tmp_path, NAME, scripts={"postinstall": "make"})
    assert of(command).integrity == integrity("1.2.3")


def test_without_a_lock_its_files_are_its_hash(tmp_path):
    assert of(npm_package(tmp_path, NAME, locked=False)).integrity.startswith("sha256:")


def test_a_lock_of_another_version_is_not_believed(tmp_path):
    command = npm_package(tmp_path, NAME)
    write(package_of(command.resolve()) / "package.json", f'{{"name": "{NAME}", "version": "6.6.6"}}')
    found = of(command)
    assert (found.version, found.integrity.startswith("sha256:")) == ("6.6.6", True)
    assert "1.2.3" in found.note


def test_a_file_outside_of_node_modules_has_no_package(tmp_path):
    write(tmp_path / "index.js", "")
    assert package_of(tmp_path / "index.js") is None
    assert package_of(tmp_path / "node_modules") is None


def test_npx_takes_the_project_first_and_else_its_cache(tmp_path):
    env = {"npm_config_cache": str(tmp_path / "cache")}
    with pytest.raises(NotTold):
        npx_package([NAME], NAME, env=env, cwd=tmp_path / "project")
    kept = npx_directory([NAME], env=env)
    npm_package(kept, NAME)
    assert kept == tmp_path / "cache/_npx" / hashlib.sha512(NAME.encode()).hexdigest()[:16]
    assert npx_package([NAME], NAME, env=env, cwd=tmp_path / "project") == kept / "node_modules" / NAME
    npm_package(tmp_path / "project", NAME)
    assert (
        npx_package([NAME], NAME, env=env, cwd=tmp_path / "project/below") == tmp_path / "project/node_modules" / NAME
    )


def test_npx_keys_do_not_depend_on_the_order_of_packages():
    assert npx_directory(["b", "a@1"], env={}) == npx_directory(["a@1", "b"], env={})


def test_the_cache_is_where_npm_is_configured_to_have_it(tmp_path):
    assert npm_cache({"HOME": str(tmp_path)}) == tmp_path / ".npm"
    write(tmp_path / ".npmrc", "registry=x\ncache = /elsewhere\n")
    assert npm_cache({"HOME": str(tmp_path)}) == Path("/elsewhere")
