"""From a command line to what it starts. Pure tables."""

from __future__ import annotations

import shlex

import pytest

from toolcrib.connectors.provenance.launch import image_spec, npm_spec, pypi_spec
from toolcrib.connectors.provenance.launchers import is_between, parse
from toolcrib.types import ProvenanceKind as Kind

DIGEST = "sha256:" + "a" * 64
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("line", "launcher", "package", "wanted", "arguments", "pinned"),
    [
        ("npx -y @scope/pkg", "npx", "@scope/pkg", "", "", False),
        ("npx -y @scope/pkg@1.2.3 --flag x", "npx", "@scope/pkg", "1.2.3", "--flag x", True),
        ("npx --yes pkg@latest", "npx", "pkg", "latest", "", False),
        ("npx pkg@^1.2.3", "npx", "pkg", "^1.2.3", "", False),
        ("npx pkg@1.2.3-beta.1 -- a", "npx", "pkg", "1.2.3-beta.1", "a", True),
        ("npx -p pkg@2.0.0 cmd a b", "npx", "pkg", "2.0.0", "a b", True),
        ("npx --package=pkg cmd a", "npx", "pkg", "", "a", False),
        ("npx --registry https://r.example pkg", "npx", "pkg", "", "", False),
        ("/usr/local/bin/npx -y pkg", "npx", "pkg", "", "", False),
        (f"npx github:o/r#{COMMIT}", "npx", "", f"github:o/r#{COMMIT}", "", True),
        ("npm exec -y -- pkg a", "npx", "pkg", "", "a", False),
        ("npm x pkg -- a", "npx", "pkg", "", "a", False),
        ("pnpm dlx pkg@1.0.0 a", "pnpm", "pkg", "1.0.0", "a", True),
        ("pnpx pkg", "pnpm", "pkg", "", "", False),
        ("yarn dlx pkg a", "yarn", "pkg", "", "a", False),
        ("bunx pkg", "bunx", "pkg", "", "", False),
        ("bun x pkg a", "bunx", "pkg", "", "a", False),
        ("cmd /c npx -y pkg", "npx", "pkg", "", "", False),
        ("env A=b npx -y pkg", "npx", "pkg", "", "", False),
        ("sh -c 'exec npx -y pkg a'", "npx", "pkg", "", "a", False),
    ],
)
def test_npm_launchers(line, launcher, package, wanted, arguments, pinned):
    found = parse(split(line))
    assert (found.kind, found.launcher, found.package, found.wanted) == (Kind.NPM, launcher, package, wanted)
    assert (found.arguments, found.pinned) == (tuple(arguments.split()), pinned)


@pytest.mark.parametrize(
    ("line", "launcher", "package", "wanted", "arguments", "pinned"),
    [
        ("uvx mcp-server-time", "uvx", "mcp-server-time", "", "", False),
        ("uvx mcp-server-time==2026.1.2 --tz UTC", "uvx", "mcp-server-time", "==2026.1.2", "--tz UTC", True),
        ("uvx mcp-server-time@2026.1.2", "uvx", "mcp-server-time", "==2026.1.2", "", True),
        ("uvx mcp-server-time@latest", "uvx", "mcp-server-time", "", "", False),
        ("uvx pkg==1.*", "uvx", "pkg", "==1.*", "", False),
        ("uvx pkg>=1,==1.2", "uvx", "pkg", ">=1,==1.2", "", False),
        ("uvx --from pkg[cli]==1.2 cmd a", "uvx", "pkg", "==1.2", "a", True),
        ("uvx --from=pkg cmd", "uvx", "pkg", "", "", False),
        ("uvx --with other --python 3.12 pkg a", "uvx", "pkg", "", "a", False),
        (f"uvx --from git+https://h/o/r@{COMMIT} cmd", "uvx", "", f"git+https://h/o/r@{COMMIT}", "", True),
        ("uvx --from git+https://h/o/r cmd", "uvx", "", "git+https://h/o/r", "", False),
        ("uv tool run pkg a", "uvx", "pkg", "", "a", False),
        ("uv --offline tool run --from pkg cmd a", "uvx", "pkg", "", "a", False),
        ("pipx run pkg a", "pipx", "pkg", "", "a", False),
        ("pipx run --spec pkg==1.2 cmd a", "pipx", "pkg", "==1.2", "a", True),
        ("sudo -u mcp uvx pkg", "uvx", "pkg", "", "", False),
    ],
)
def test_python_launchers(line, launcher, package, wanted, arguments, pinned):
    found = parse(split(line))
    assert (found.kind, found.launcher, found.package, found.wanted) == (Kind.PYTHON, launcher, package, wanted)
    assert (found.arguments, found.pinned) == (tuple(arguments.split()), pinned)


@pytest.mark.parametrize(
    ("line", "kind", "launcher", "module", "script", "arguments"),
    [
        ("python -m pkg.server a", Kind.PYTHON, "python", "pkg.server", "", "a"),
        ("/x/venv/bin/python3.11 -Im pkg", Kind.PYTHON, "python", "pkg", "", ""),
        ("python3 -W ignore -X dev -u -m pkg", Kind.PYTHON, "python", "pkg", "", ""),
        ("python -mpkg", Kind.PYTHON, "python", "pkg", "", ""),
        ("python.exe -m pkg", Kind.PYTHON, "python", "pkg", "", ""),
        ("python server.py --port 1", Kind.FILE, "python", "", "server.py", "--port 1"),
        ("python -S -u server.py -m x", Kind.FILE, "python", "", "server.py", "-m x"),
        ("uv run server.py", Kind.FILE, "uv", "", "server.py", ""),
        ("uv run -m pkg a", Kind.PYTHON, "uv", "pkg", "", "a"),
        ("uv run python -m pkg a", Kind.PYTHON, "uv", "pkg", "", "a"),
        ("uv run mcp run server.py", Kind.FILE, "uv", "", "server.py", "server.py"),
        ("fastmcp run server.py:app -t stdio", Kind.FILE, "fastmcp", "", "server.py", "server.py:app -t stdio"),
        ("node -r dotenv server.js a", Kind.FILE, "node", "", "server.js", "a"),
        ("nodejs --max-old-space-size=99 server.js", Kind.FILE, "node", "", "server.js", ""),
        ("bun run index.ts", Kind.FILE, "bun", "", "index.ts", ""),
        ("deno run --allow-net server.ts", Kind.FILE, "deno", "", "server.ts", ""),
        ("npx tsx server.ts a", Kind.FILE, "tsx", "", "server.ts", "a"),
        ("java -jar server.jar a", Kind.FILE, "java", "", "server.jar", "a"),
        ("bash start.sh a", Kind.FILE, "sh", "", "start.sh", "a"),
        ("timeout -s KILL 30 python server.py", Kind.FILE, "python", "", "server.py", ""),
    ],
)
def test_interpreters(line, kind, launcher, module, script, arguments):
    found = parse(split(line))
    assert (found.kind, found.launcher, found.module, found.script) == (kind, launcher, module, script)
    assert found.arguments == tuple(arguments.split())


def test_a_project_of_uv_is_where_it_starts():
    found = parse(split("uv --directory /srv/x run --with pkg server --flag"))
    assert (found.directory, found.package, found.pinned, found.program) == ("/srv/x", "pkg", False, "server")
    assert parse(split("uv run --directory /srv/x server")).pinned


def test_code_on_the_command_line_is_code():
    assert (parse(("python", "-c", "import x")).kind, parse(("python", "-c", "import x")).code) == (
        Kind.CODE,
        "import x",
    )
    assert parse(("node", "-e", "1")).code == "1"


@pytest.mark.parametrize(
    ("line", "image", "arguments", "pinned"),
    [
        ("docker run -i --rm mcp/time a", "mcp/time", "a", False),
        ("docker run -it --name x -e TOKEN -v /a:/b mcp/time:1", "mcp/time:1", "", False),
        ("docker run -eA=b --env=C=d --mount type=bind,src=/a,dst=/b mcp/time", "mcp/time", "", False),
        (f"docker run --rm -i mcp/time@{DIGEST} a", f"mcp/time@{DIGEST}", "a", True),
        ("docker --context c container run --pull always mcp/time", "mcp/time", "", False),
        ("podman run --replace --rmi -i ghcr.io/o/i", "ghcr.io/o/i", "", False),
    ],
)
def test_images(line, image, arguments, pinned):
    found = parse(split(line))
    assert (found.kind, found.specs, found.arguments) == (Kind.IMAGE, (image,), tuple(arguments.split()))
    assert found.pinned is pinned


@pytest.mark.parametrize(
    ("line", "program"),
    [("/opt/bin/server --flag", "/opt/bin/server"), ("docker compose up", "docker"), ("pnpm install", "pnpm")],
)
def test_what_is_not_understood_is_a_program_or_nothing(line, program):
    found = parse(split(line))
    assert found.kind in (Kind.EXECUTABLE, Kind.UNKNOWN)
    assert (found.program, found.package) == (program, "")


def test_a_shell_line_with_more_than_one_command_is_not_looked_through():
    assert parse(("sh", "-c", "cd /x && node a.js")).opaque
    assert parse(("bash", "-lc", "node $X/a.js")).opaque
    assert not parse(("bash", "-lc", "A=b exec node 'my server.js'")).opaque


def test_an_endless_nesting_ends():
    assert parse(("env",) * 50).kind is Kind.UNKNOWN
    assert parse(()).kind is Kind.UNKNOWN


@pytest.mark.parametrize(
    ("line", "spec", "pinned"),
    [
        ("npx -y pkg a b", "pkg@1.0.0", "npx -y pkg@1.0.0"),
        ("npx --package=pkg cmd a", "pkg@1.0.0", "npx --package=pkg@1.0.0 cmd"),
        ("cmd /c npx -y pkg a", "pkg@1.0.0", "cmd /c npx -y pkg@1.0.0"),
        ("uvx --from=pkg cmd a", "pkg==1", "uvx --from=pkg==1 cmd"),
        ("uvx --with x pkg a", "pkg==1", "uvx --with x pkg==1"),
        ("uv tool run --from pkg cmd a", "pkg==1", "uv tool run --from pkg==1 cmd"),
        ("env A=b uvx pkg a", "pkg==1", "env A=b uvx pkg==1"),
        ("docker run -i mcp/time:1 a", f"mcp/time@{DIGEST}", f"docker run -i mcp/time@{DIGEST}"),
    ],
)
def test_the_pinned_line_ends_with_the_package(line, spec, pinned):
    assert parse(split(line)).pinned_line(spec) == split(pinned)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("@s/p", ("@s/p", "")),
        ("@s/p@1", ("@s/p", "1")),
        ("p@npm:q@1", ("p", "npm:q@1")),
        ("./p", ("", "./p")),
        ("o/r", ("", "o/r")),
        ("https://h/p.tgz", ("", "https://h/p.tgz")),
    ],
)
def test_npm_specs(spec, told):
    assert npm_spec(spec) == told


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("p", ("p", "")),
        ("p [x] == 1", ("p", "== 1")),
        ("p==1; python_version>'3'", ("p", "==1")),
        ("./p", ("", "./p")),
    ],
)
def test_requirements(spec, told):
    assert pypi_spec(spec) == told


def test_image_references():
    assert image_spec("localhost:5000/a/b:1") == ("localhost:5000/a/b", "1", "")
    assert image_spec(f"a:1@{DIGEST}") == ("a", "1", DIGEST)
    assert image_spec("a@sha256:short") == ("a", "", "")


@pytest.mark.parametrize(
    ("words", "between"),
    [
        (("npm exec pkg",), True),
        (("sh", "-c", "x"), True),
        (("/usr/bin/uvx", "pkg"), True),
        (("node", "/usr/bin/npx", "pkg"), True),
        (("node", "/x/node_modules/.bin/server"), False),
        (("/x/bin/python", "/x/bin/server"), False),
    ],
)
def test_launchers_are_told_from_servers(words, between):
    assert is_between(words) is between


def split(line: str) -> tuple[str, ...]:
    return tuple(shlex.split(line))
