from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.providers.names import NameTarget, public_name, tool_id_from_name

LEGAL = {
    NameTarget.MCP: r"[a-zA-Z0-9_-]{1,40}",
    NameTarget.ANTHROPIC: r"[a-zA-Z0-9_-]{1,64}",
    NameTarget.OPENAI: r"[a-zA-Z0-9_-]{1,64}",
    NameTarget.GEMINI: r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}",
}
TARGETS = pytest.mark.parametrize("target", NameTarget)

PART = st.text(alphabet="ab_-.Z9", min_size=1, max_size=6) | st.text(max_size=20) | st.text(min_size=60, max_size=300)
TOOL_ID = st.builds(lambda server, name: f"{server}.{name}", PART, PART)


@TARGETS
@given(tool_id=TOOL_ID)
def test_every_id_gets_a_legal_name(target, tool_id):
    assert re.fullmatch(LEGAL[target], public_name(tool_id, target=target))


@TARGETS
@given(tool_ids=st.sets(TOOL_ID, max_size=30))
def test_names_are_distinct_and_lead_back(target, tool_ids):
    names = {public_name(tool_id, target=target): tool_id for tool_id in tool_ids}
    assert len(names) == len(tool_ids)
    for name, tool_id in names.items():
        assert tool_id_from_name(name, tool_ids, target=target) == tool_id


@TARGETS
@given(server=st.text(alphabet="ab_", min_size=1, max_size=4), name=st.text(alphabet="ab_.", min_size=1, max_size=5))
@settings(max_examples=300)
def test_ids_made_of_joints_never_share_a_name_with_their_neighbours(target, server, name):
    whole = f"{server}.{name}"
    neighbours = {whole.replace(".", "_"), whole.replace("_", "."), whole.replace("__", "_"), f"{server}_.{name}",
                  f"{server}._{name}", f"{server}.{name}_"} - {whole}  # fmt: skip
    assert public_name(whole, target=target) not in {public_name(other, target=target) for other in neighbours}


@TARGETS
@given(tool_id=TOOL_ID)
def test_the_gateways_own_names_are_never_made(target, tool_id):
    assert public_name(tool_id, target=target) not in {"find_tools", "describe_tools", "call_tool"}


@TARGETS
@pytest.mark.parametrize("tool_id", [".", "a.", "nodot", "", "x.find_tools", "find_tools.", ".call_tool", "\ud800.x"])
def test_odd_ids_get_legal_names_too(target, tool_id):
    assert re.fullmatch(LEGAL[target], public_name(tool_id, target=target))


@pytest.mark.parametrize(
    ("tool_id", "name"),
    [
        ("github.create_issue", "github__create_issue"),
        ("my-server.get-Thing2", "my-server__get-Thing2"),
        ("_s.t_", "_s__t_"),
        ("b.find_tools", "b__find_tools"),
    ],
)
@TARGETS
def test_safe_ids_keep_their_words(target, tool_id, name):
    assert public_name(tool_id, target=target) == name


# Written down: a name that changes between releases breaks every prompt and log that holds it.
WRITTEN_DOWN = [
    ("a.admin.tools.list", "a__admin_tools_list__fuktxfqawe"),
    ("a._status", "a__status__ng5l6feozm"),
    ("a_.status", "a__status__u46eg6z3p3"),
    ("a.b__c", "a__b_c__is2eb52pqy"),
    ("s.поиск", "s__t__sthirpb33p"),
    ("claude_ai_Cloudflare_Developer_Platform.search_cloudflare_documentation",
     "claude_a__search_cloudflare__fuconcyltx"),
]  # fmt: skip


@pytest.mark.parametrize(("tool_id", "name"), WRITTEN_DOWN, ids=[row[0][:20] for row in WRITTEN_DOWN])
def test_lossy_names_carry_a_hash_and_never_change(tool_id, name):
    assert public_name(tool_id, target=NameTarget.MCP) == name


def test_a_hashed_name_has_two_joints_and_a_lossless_one_has_one():
    assert public_name("a.b", target=NameTarget.MCP).count("__") == 1
    assert public_name("a.b.c", target=NameTarget.MCP).count("__") == 2
    # A server may not take another's hashed name by calling its own tool so.
    hashed = public_name("a.b.c", target=NameTarget.MCP)
    server, _, rest = hashed.partition("__")
    assert public_name(f"{server}.{rest}", target=NameTarget.MCP) != hashed


def test_gemini_names_begin_with_a_letter():
    assert public_name("7z.extract", target=NameTarget.ANTHROPIC) == "7z__extract"
    assert public_name("7z.extract", target=NameTarget.GEMINI).startswith("s7z__extract__")


def test_a_long_tool_name_keeps_its_words_before_the_servers():
    name = public_name("averyveryverylongserver.search.everything.everywhere", target=NameTarget.MCP)
    assert name.partition("__")[0] == "averyver"
    assert "search_everything" in name


@TARGETS
@pytest.mark.parametrize("name", ["", "find_tools", "a.b", "a__missing", "a__b__aaaaaaaaaa", "a___b", "__", "____"])
def test_names_of_nothing_lead_nowhere(target, name):
    assert tool_id_from_name(name, {"a.b", "a.b.c", "a._b"}, target=target) is None
