"""The file that `toolcrib init` writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toolcrib.settings import Settings, load_settings, starter_toml
from toolcrib.settings.document import tables


def loaded(folder: Path, text: str) -> Settings:
    (folder / "toolcrib.toml").write_text(text, encoding="utf-8")
    return load_settings(folder)


@pytest.mark.parametrize("name", ["desk", 'a "b" \\ c', "naïve 工具", "tab\there", "del\x7f", "   "])
def test_the_starter_loads_without_a_warning_whatever_the_name(tmp_path: Path, name: str) -> None:
    settings = loaded(tmp_path, starter_toml(name))
    assert settings.crib.name == (name.strip() or "crib")
    assert settings.servers == ()
    assert settings.warnings == ()


def test_a_folder_whose_name_is_no_text_has_a_starter_too(tmp_path: Path) -> None:
    assert loaded(tmp_path, starter_toml("a\udcff")).crib.name == "a?"


def test_every_commented_setting_loads_once_its_comment_sign_is_gone(tmp_path: Path) -> None:
    settings = loaded(tmp_path, re.sub(r"(?m)^#(?=[\[a-z])", "", starter_toml("desk")))
    assert [server.transport for server in settings.servers] == ["stdio", "http", "file"]
    assert settings.warnings == ()


def test_every_table_and_key_is_shown() -> None:
    text = starter_toml("desk")
    for names, (model, repeated) in tables().items():
        header = f"[[{'.'.join(names)}]]" if repeated else f"[{'.'.join(names)}]"
        inline = names[-1] == "caller"
        if not inline:
            assert re.search(rf"(?m)^#?{re.escape(header)}", text), header
        for key in model.model_fields:
            assert re.search(rf"\b{key}\b", text), (names, key)


def test_given_servers_take_the_place_of_the_examples(tmp_path: Path) -> None:
    text = starter_toml("desk", servers_toml='[[servers]]\nid = "mine"\ncommand = ["a"]\n')
    assert [server.server_id for server in loaded(tmp_path, text).servers] == ["mine"]
    assert "mcp-server-time" not in text
