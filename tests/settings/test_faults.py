"""What a wrong `toolcrib.toml` gives: what, where, and what to do; all at once; and never a secret."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from toolcrib.errors import ConfigError
from toolcrib.settings import load_settings

SERVER = '[[servers]]\nid = "x"\n'


def fault_of(folder: Path, text: str) -> ConfigError:
    (folder / "toolcrib.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load_settings(folder)
    return error.value


CASES = {
    "no toml": ("[crib]\nname = x\n", 2, "quotes"),
    "backslash": ('[crib]\nname = "C:\\work"\n', 2, "single quotes"),
    "unfinished": ('[crib]\nname = "x"\n[servers', 3, "[table]"),
    "key twice": ('[crib]\nname = "x"\nname = "y"\n', 3, "twice"),
    "unknown table": ("[crib]\n[selectoin]\nlimit = 5\n", 2, "did you mean `selection`?"),
    "unknown key": ('[crib]\nenviroment = "x"\n', 2, "did you mean `environment`?"),
    "unknown key of a row": (
        '[[tools]]\nmatch = "a.*"\n\n[[tools]]\nmatch = "b.*"\nscopes = []\n',
        6,
        "required_scopes",
    ),
    "alias that is no text": ('[[tools]]\nmatch = "a.b"\naliases = [["a.c"]]\n', 3, "aliases = "),
    "key in the wrong table": ("[crib]\nlimit = 5\n", 2, "belongs to [selection]"),
    "key unlike any": (SERVER + 'command = "a"\nzzz = 1\n', 4, "start_timeout_s"),
    "key in an inline table": (
        '[[identity.tokens]]\ntoken = "env:T"\ncaller = { subject = "a", tenants = "b" }\n',
        3,
        "`tenant`",
    ),
    "missing key": ('[[tools]]\nmatch = "a.*"\n[[tools]]\nrisk = "read"\n', 3, "match"),
    "text for a number": ('[selection]\nlimit = "5"\n', 2, "limit = 5"),
    "number for a text": ("[crib]\nname = 5\n", 2, "text in quotes"),
    "truth for a number": ("[selection]\nlimit = true\n", 2, "limit = 5"),
    "text for a list": ('[[tools]]\nmatch = "a.*"\nstages = "triage"\n', 3, '["one", "two"]'),
    "number in a list": ('[[tools]]\nmatch = "a.*"\nstages = [\n"a",\n5]\n', 5, '["one", "two"]'),
    "number in env": (SERVER + 'command = "a"\nenv = { PORT = 80 }\n', 4, 'PORT = "text in quotes"'),
    "single brackets": ('[servers]\nid = "x"\n', 1, "[[servers]]"),
    "double brackets": ('[[gate]]\nunknown_risk = "allow"\n', 1, "[gate]"),
    "zero": ("[selection]\nlimit = 0\n", 2, "limit = 1"),
    "below zero": ('[[tools]]\nmatch = "a.*"\ncost = -1\n', 3, "cost = 0"),
    "more tools than one answer holds": ("[selection]\nlimit = 51\n", 2, "limit = 50"),
    "an approval for years": ("[gate]\napproval_ttl_s = 2592000.5\n", 2, "approval_ttl_s = 2592000"),
    "an approval for ever": ("[gate]\napproval_ttl_s = 1e300\n", 2, "approval_ttl_s = 2592000"),
    "a key for no time": ("[gate]\nidempotency_window_s = 0\n", 2, "idempotency_window_s = 1"),
    "a key for years": ("[gate]\nidempotency_window_s = 2592000.5\n", 2, "idempotency_window_s = 2592000"),
    "traces before the calendar": ("[trace]\nkeep_days = 36501\n", 2, "keep_days = 36500"),
    "a call of more than a day": (SERVER + 'command = "a"\ncall_timeout_s = 86401\n', 4, "call_timeout_s = 86400"),
    "a start of more than a day": (SERVER + 'command = "a"\nstart_timeout_s = 1e9\n', 4, "start_timeout_s = 86400"),
    "not a number": (SERVER + 'command = "a"\ncall_timeout_s = nan\n', 4, "call_timeout_s = 30"),
    "beyond a share": ("[retrieval]\nconfidence_floor = 1.5\n", 2, "confidence_floor = 1"),
    "unknown risk": (
        '[[tools]]\nmatch = "a.*"\nrisk = "raed"\n',
        3,
        'did you mean "read"? allowed: "read", "write", "destructive"',
    ),
    "unknown status": ('[[tools]]\nmatch = "a.*"\nstatus = "gone"\n', 3, '"active", "deprecated", "retired"'),
    "unknown transport": (SERVER + 'transport = "sse"\nurl = "https://a.example/"\n', 3, '"stdio", "http", "file"'),
    "ceiling that is none": ('[[routing.risk_ceilings]]\nmax_risk = "destructive"\n', 2, '"read", "write"'),
    "empty glob": ('[[tools]]\nmatch = " "\nrisk = "read"\n', 2, "github.*"),
    "open bracket": ('[[tools]]\nmatch = "crm.[a-z"\nrisk = "read"\n', 2, "crm.get_[a-z]*"),
    "bad glob in a list": ('[fallback]\ntools = ["a.*", "b.[!]"]\n', 2, "github.*"),
    "replaced by no tool id": ('[[tools]]\nmatch = "a.*"\nreplaced_by = "nodot"\n', 3, "<server id>.<tool name>"),
    "pointer without slash": (
        '[[resources]]\ntype = "T"\ntools = "*"\nargument = "id"\nlookup_tool = "a.b"\ntenant = "/t"\n',
        4,
        '"/shipment_id"',
    ),
    "id with a dot": ('[[servers]]\nid = "a.b"\ncommand = "a"\n', 2, "no dot"),
    "id too long": (f'[[servers]]\nid = "{"a" * 65}"\ncommand = "a"\n', 2, "1 to 64"),
    "id twice": (SERVER + 'command = "a"\n\n' + SERVER + 'command = "b"\n', 6, "its own"),
    "no transport": (SERVER, 1, "transport"),
    "two transports": (SERVER + 'command = "a"\nurl = "https://a.example/"\n', 1, "transport"),
    "stdio without command": (SERVER + 'transport = "stdio"\n', 1, "command ="),
    "http without url": (SERVER + 'transport = "http"\n', 1, "url ="),
    "file without path": (SERVER + 'transport = "file"\n', 1, "path ="),
    "foreign key": (SERVER + 'transport = "file"\npath = "a"\nenv = { A = "b" }\n', 5, 'transport = "stdio"'),
    "empty command": (SERVER + "command = []\n", 3, "name the program"),
    "open quote": (SERVER + 'command = "npx \'a"\n', 3, "write a list"),
    "url of another kind": (SERVER + 'url = "ftp://a.example/"\n', 3, "https://"),
    "url without host": (SERVER + 'url = "https:///mcp"\n', 3, "https://"),
    "url with a bad port": (SERVER + 'url = "https://a.example:99999/"\n', 3, "https://"),
    "header name": (SERVER + 'url = "https://a.example/"\nheaders = { "a b" = "c" }\n', 4, "letters"),
    "header with a line break": (SERVER + 'url = "https://a.example/"\nheaders = { a = "b\\nc" }\n', 4, "one line"),
    "reference to no variable": (SERVER + 'command = "a"\nenv = { A = "env:1 2" }\n', 4, "env:NAME"),
    "token with a prefix": ('[[identity.tokens]]\ntoken = "Bearer env:T"\ncaller = { subject = "a" }\n', 2, "env:NAME"),
    "token twice": ('[[identity.tokens]]\ntoken = "env:T"\ncaller = { subject = "a" }\n' * 2, 5, "its own"),
    "a quote never closed": ('[crib]\nname = "crib\n', 2, "a quote at either end"),
    "a last quote never closed": ('[crib]\nname = "crib', 2, "a quote at either end"),
    "a single quote never closed": ("[crib]\nname = 'crib\n", 2, "a quote at either end"),
    "a backslash": ('[crib]\nname = "C:\\User"\n', 2, "single quotes"),
    "another backslash": ('[crib]\nname = "C:\\Bin"\n', 2, "single quotes"),
    "caller without subject": ('[[identity.tokens]]\ntoken = "env:T"\ncaller = { tenant = "a" }\n', 3, "subject"),
}


@pytest.mark.parametrize(("text", "line", "hint"), CASES.values(), ids=list(CASES))
def test_each_fault_has_its_line_and_what_to_do(tmp_path: Path, text: str, line: int, hint: str) -> None:
    fault = fault_of(tmp_path, text)
    assert fault.where == f"toolcrib.toml:{line}"
    assert hint in fault.hint


def test_all_problems_are_told_at_once_in_the_order_of_their_lines(tmp_path: Path) -> None:
    fault = fault_of(
        tmp_path, '[crib]\nname = 5\n[[servers]]\nid = "x"\nurl = 5\npath = "a"\n[[tools]]\nmatch = ""\nrisk = "x"\n'
    )
    said = [line.split(":")[1] for line in str(fault).split("\n") if line.startswith("  toolcrib.toml:")]
    assert said == ["2", "3", "5", "8", "9"]


def test_a_missing_file_says_init(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "toolcrib.toml", tmp_path / "absent"):
        with pytest.raises(ConfigError) as error:
            load_settings(path)
        assert "toolcrib init" in error.value.hint
        assert str(tmp_path) in error.value.where


def test_bytes_that_are_no_text_have_their_line(tmp_path: Path) -> None:
    (tmp_path / "toolcrib.toml").write_bytes(b'[crib]\nname = "\xff\xfe"\n')
    with pytest.raises(ConfigError) as error:
        load_settings(tmp_path)
    assert error.value.where == "toolcrib.toml:2"


@pytest.mark.parametrize("text", ["a = " + "[" * 5_000, f"a = {'9' * 5_000}"], ids=["deep", "endless number"])
def test_hostile_text_is_a_fault_and_no_crash(tmp_path: Path, text: str) -> None:
    assert "TOML" in fault_of(tmp_path, text).what


HUGE = {"decimal": "1" + "0" * 400, "hexadecimal": "0x" + "f" * 5_000}
NUMBERS = {
    "[gate]": ("calls_per_minute", "max_result_bytes", "approval_ttl_s", "duplicate_window_s", "idempotency_window_s"),
    "[gate.circuit]": ("failures", "reset_s"),
    "[[gate.limits]]\nby = 'tool'": ("calls_per_minute", "concurrent"),
    "[[tools]]\nmatch = '*'": ("cost", "latency_ms"),
    "[retrieval]": ("top_k", "confidence_floor"),
    "[selection]": ("limit", "token_budget"),
    "[trace]": ("keep_days",),
    "[routing.health]": ("window_s", "min_calls"),
    SERVER + "command = 'a'": ("max_pages", "max_list_bytes", "call_timeout_s"),
    "[crib]": ("name",),
    "[policy]": ("on_broken",),
}


@pytest.mark.parametrize("number", HUGE.values(), ids=list(HUGE))
@pytest.mark.parametrize(("table", "key"), [(table, key) for table, keys in NUMBERS.items() for key in keys])
def test_a_number_that_arithmetic_cannot_hold_is_told_in_few_words(
    tmp_path: Path, table: str, key: str, number: str
) -> None:
    fault = fault_of(tmp_path, f"{table}\n{key} = {number}\n")
    assert fault.where == f"toolcrib.toml:{table.count(chr(10)) + 2}"
    assert key in fault.what
    assert "number, not a number" not in fault.what
    assert len(str(fault)) < 200


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("[gate]\ncalls_per_minute", 10**6),
        ("[gate]\nmax_result_bytes", 10**9),
        ("[gate.circuit]\nfailures", 10**6),
        ("[[gate.limits]]\nby = 'tool'\nconcurrent", 10**6),
        ("[[gate.limits]]\nby = 'tool'\ncalls_per_minute", 10**6),
        ("[retrieval]\ntop_k", 10**9),
    ],
)
def test_every_whole_number_has_an_upper_bound(tmp_path: Path, text: str, most: int) -> None:
    (tmp_path / "toolcrib.toml").write_text(f"{text} = {most}\n", encoding="utf-8")
    assert load_settings(tmp_path).warnings == ()
    assert f"at most {most}" in fault_of(tmp_path, f"{text} = {most + 1}\n").what


HIDDEN = "hunter2hunter2"
GITHUB = "ghp_" + "a1" * 18
LEAKS = {
    "env": f'command = "a"\nenv = {{ API_KEY = "{HIDDEN}" }}',
    "env table": f'command = "a"\n[servers.env]\ngithubToken = "{HIDDEN}"',
    "known shape": f'command = "a"\nenv = {{ THING = "{GITHUB}" }}',
    "url in env": f'command = "a"\nenv = {{ DB = "postgres://app:{HIDDEN}@db/x" }}',
    "header": f'url = "https://a.example/"\nheaders = {{ Authorization = "Bearer {HIDDEN}" }}',
    "password in url": f'url = "https://u:{HIDDEN}@a.example/"',
    "key in url": f'url = "https://a.example/?apiKey={HIDDEN}"',
    "flag": f'command = "a"\nargs = ["--api-key", "{HIDDEN}"]',
    "flag with equals": f'command = ["a", "--token={HIDDEN}"]',
    "docker variable": f'command = ["docker", "run", "-e", "API_KEY={HIDDEN}", "img"]',
    "header argument": f'command = ["npx", "--header", "Authorization: Bearer {HIDDEN}"]',
    "nested argument": f'command = ["npx", "--header=X-Api-Key: {HIDDEN}"]',
    "json argument": f"""command = ["npx", '{{"apiKey":"{HIDDEN}"}}']""",
    "one text": f'command = "a --password {HIDDEN}"',
    "broken reference": f'command = "a"\nenv = {{ A = "env:{HIDDEN}-x" }}',
    "wrong type beside it": f'command = "a"\nenv = {{ A = 1, API_KEY = "{HIDDEN}" }}',
    "wrong table": f'command = "a"\nenv = ["{HIDDEN}"]',
    "bad url": f'url = "ftp://{HIDDEN}.example/"',
    "bad header": f'url = "https://a.example/"\nheaders = {{ x = "{HIDDEN}\\n" }}',
}


@pytest.mark.parametrize("rest", LEAKS.values(), ids=list(LEAKS))
def test_a_secret_is_refused_and_appears_nowhere(tmp_path: Path, rest: str) -> None:
    fault = fault_of(tmp_path, f'[[servers]]\nid = "x"\n{rest}\n')
    told = "".join(traceback.format_exception(fault)) + repr(fault) + repr(vars(fault)) + repr(fault.__context__)
    assert HIDDEN not in told
    assert GITHUB not in told
    assert "toolcrib.toml:" in str(fault)


def test_a_bearer_token_in_plain_text_is_refused_and_appears_nowhere(tmp_path: Path) -> None:
    fault = fault_of(tmp_path, f'[[identity.tokens]]\ntoken = "{HIDDEN}"\ncaller = {{ subject = "a" }}\n')
    assert fault.where == "toolcrib.toml:2"
    assert "env:NAME" in fault.hint
    assert HIDDEN not in "".join(traceback.format_exception(fault))


def test_a_secret_beside_a_syntax_error_appears_nowhere(tmp_path: Path) -> None:
    fault = fault_of(tmp_path, f"[[servers]]\nenv = {{ API_KEY = {HIDDEN} }}\n")
    assert HIDDEN not in "".join(traceback.format_exception(fault))


HARMLESS = [
    ("TOKEN_URL", "https://login.example.com/token"),
    ("PRIVATE_KEY_FILE", "/etc/key.pem"),
    ("MAX_TOKENS", "4096"),
    ("DISABLE_AUTH", "true"),
    ("AUTH_METHOD", "oauth"),
    ("GOOGLE_APPLICATION_CREDENTIALS", "/etc/google.json"),
    ("KEYBOARD", "qwertz"),
    ("REPO", "ssh://git@github.example/x"),
    ("API_KEY", "env:API_KEY"),
    ("API_KEY", "file:/run/secrets/key"),
    ("DB", "postgres://db.example/x"),
]


@pytest.mark.parametrize(("name", "value"), HARMLESS)
def test_what_is_no_secret_may_stand_in_plain_text(tmp_path: Path, name: str, value: str) -> None:
    (tmp_path / "toolcrib.toml").write_text(f'[[servers]]\nid = "x"\ncommand = "a"\nenv = {{ {name} = "{value}" }}\n')
    assert load_settings(tmp_path).servers[0].env
