"""Arguments as they may stand in a lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcrib.connectors.provenance.arguments import shown

ROOT = Path("/work/crib")


def one(*words: str) -> list[str]:
    return list(shown(words, mask=lambda text: text.replace("hunter2", "***"), root=ROOT))


@pytest.mark.parametrize(
    ("word", "kept"),
    [
        ("--tz=Europe/Berlin", "--tz=Europe/Berlin"),
        ("hunter2", "***"),
        ("x-hunter2-y", "x-***-y"),
        ("--api-key=abc", "--api-key=***"),
        ("OPENAI_API_KEY=abc", "OPENAI_API_KEY=***"),
        ("Authorization: Bearer abc.def", "Authorization: ***"),
        ("bearer abc.def", "bearer ***"),
        ("postgres://u:p@host/db", "postgres://***@host/db"),
        ("https://h/p?token=abc&x=1", "https://h/p?token=***&x=1"),
        ("https://h/p?searchApiKey=abc&x=1", "https://h/p?searchApiKey=***&x=1"),
        ("https://h/p#access_token=abc", "https://h/p#access_token=***"),
        ("--githubToken=abc", "--githubToken=***"),
        ("--header=X-Api-Key: abc", "--header=X-Api-Key: ***"),
        ("--env=GITHUB_TOKEN=abc", "--env=GITHUB_TOKEN=***"),
        ("-eTOKEN=abc", "-eTOKEN=***"),
        ("host=h;Password=abc;db=x", "host=h;Password=***;db=x"),
        ('{"apiKey": "a\\"bc", "tz": "UTC"}', '{"apiKey": "***", "tz": "UTC"}'),
        ('{\\"apiKey\\":\\"abc\\",\\"tz\\":\\"UTC\\"}', '{\\"apiKey\\":\\"***\\",\\"tz\\":\\"UTC\\"}'),
        ('{"pin": "7", "password": 123456}', '{"pin": "7", "password": "***"}'),
        ('{"keyboard": "de"}', '{"keyboard": "de"}'),
        ('{"token' + '\\\\"' * 1_000, '{"token' + '\\\\"' * 1_000),
        ("ghp_" + "a1" * 18, "***"),
        ("sk-proj-" + "a1" * 18, "***"),
        ("0123456789abcdef0123456789abcdef", "***"),
        ("--allowed-directories-of-the-whole-project", "--allowed-directories-of-the-whole-project"),
        ("MY_KEY=line\nanother", "MY_KEY=***"),
        ("monkey=1", "monkey=1"),
        ("x" * 200_000, "(200000 characters)"),
        ("?" + "a_" * 2_000, "?" + "a_" * 2_000),
        ("a://" * 1_000, "a://" * 1_000),
        ("--keyboard=de", "--keyboard=de"),
        ("/work/crib", "."),
        ("/work/crib/data/x.db", "./data/x.db"),
        ("--root=/work/crib/data", "--root=./data"),
        ("/work/cribs", "…/cribs"),
        ("/srv/secret-place/data/", "…/data"),
        ("/", "/"),
        ("src/x.py", "src/x.py"),
        ("../x", "../x"),
        ("@scope/pkg", "@scope/pkg"),
        ("host:/inside", "host:/inside"),
        (r"C:\Users\ann\data", "…/data"),
        ('{"dir": "/srv/a/b"}', '{"dir": "…/b"}'),
        ("https://example.com/a/b", "https://example.com/a/b"),
        ("file:///work/crib/a", "file://./a"),
    ],
    ids=lambda text: text[:40],
)
def test_a_word(word, kept):
    assert one(word) == [kept]


def test_what_follows_a_name_of_a_secret_is_one():
    assert one("--token", "plain", "--verbose", "plain") == ["--token", "***", "--verbose", "plain"]
    assert one("--githubToken", "plain") == ["--githubToken", "***"]
    assert one("--token", "--verbose") == ["--token", "--verbose"]


def test_the_home_directory_is_nobodys():
    assert one(str(Path.home() / "notes")) == ["~/notes"]
