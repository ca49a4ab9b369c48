"""What a caller sees, as a pure function of the caller's view."""

from __future__ import annotations

import pytest

from toolcrib.server.meta_tools import META_NAMES, kinds_text, meta_tools
from toolcrib.server.surface import SurfaceKind, for_legacy, mcp_name, surface_of
from toolcrib.types import Channel

from .carriers import ADA
from .fakes import FakeCrib, tool


def view_of(*tools):
    crib = FakeCrib()
    for made in tools:
        crib.put(made)
    return crib.view(ADA, Channel.STDIO)


def listed(view, kind=SurfaceKind.SEARCH):
    return [definition["name"] for definition in surface_of(view, kind).listing]


def test_search_surface_lists_the_meta_tools_then_preloaded_tools_by_id():
    view = view_of(tool("b.two", preload=True), tool("a.one", preload=True), tool("a.three"))
    assert listed(view) == [*META_NAMES, mcp_name("a.one"), mcp_name("b.two")]


def test_all_surface_lists_every_permitted_tool_and_no_meta_tool():
    surface = surface_of(view_of(tool("b.two"), tool("a.one", preload=True)), SurfaceKind.ALL)
    assert [d["name"] for d in surface.listing] == [mcp_name("a.one"), mcp_name("b.two")]
    assert surface.meta_names == frozenset()


def test_every_permitted_tool_has_its_public_name_and_its_id():
    made = tool("a.one")
    surface = surface_of(view_of(made), SurfaceKind.SEARCH)
    assert surface.tool(mcp_name("a.one")) == surface.tool("a.one") == made
    assert surface.tool("one") is None


def test_listed_definition_differs_in_its_name_alone():
    definition = {
        "name": "one",
        "x-vendor": {"keep": [1, None]},
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/A"}},
            "$defs": {"A": {"default": None}},
        },
        "outputSchema": {"type": "array"},
        "_meta": {"com.example/owner": None},
        "annotations": {"readOnlyHint": True, "x-hint": 1},
    }
    made = tool("a.one", definition, preload=True)
    shown = surface_of(view_of(made), SurfaceKind.SEARCH).listing[-1]
    assert shown == {**made.definition, "name": mcp_name("a.one")}
    assert list(shown) == list(made.definition)


def test_a_tool_named_like_a_meta_tool_is_not_listed_over_it(monkeypatch):
    monkeypatch.setattr("toolcrib.server.surface.mcp_name", lambda tool_id: tool_id.partition(".")[2])
    view = view_of(tool("a.find_tools", preload=True))
    surface = surface_of(view, SurfaceKind.SEARCH)
    assert [d["name"] for d in surface.listing] == list(META_NAMES)
    assert surface.tool("a.find_tools") is not None


def test_description_names_the_kinds_of_permitted_tools_on_one_line():
    assert kinds_text(["git", "bil\nling", "git"]) == "Kinds of tools available to you: bil ling, git."
    assert "git" in meta_tools(["git"])[0]["description"]


def test_description_says_so_when_there_are_no_tools():
    assert "No tools" in kinds_text(())


def test_description_stays_bounded_with_many_namespaces():
    text = kinds_text([f"namespace-{i:04}" for i in range(3_000)])
    assert len(text) < 2_000
    assert "and 2940 more" in text


def test_same_view_gives_the_same_surface():
    one, two = (surface_of(view_of(tool("a.one"), tool("b.two", preload=True)), SurfaceKind.SEARCH) for _ in range(2))
    assert one == two


@pytest.mark.parametrize(
    ("change", "listing_changes"),
    [
        (lambda crib: crib.change("a.shown", description="other"), True),
        (lambda crib: crib.drop("a.shown"), True),
        (lambda crib: crib.prefer("a.kept", preload=True), True),
        (lambda crib: crib.put(tool("z.new")), True),  # a new namespace is named in the description
        (lambda crib: crib.put(tool("a.new")), False),
        (lambda crib: crib.change("a.kept", description="other"), False),
    ],
    ids=["definition", "removed", "preloaded", "namespace", "unlisted-added", "unlisted-changed"],
)
def test_version_changes_exactly_with_the_listing(change, listing_changes):
    crib = FakeCrib()
    crib.put(tool("a.shown", preload=True))
    crib.put(tool("a.kept"))
    before = surface_of(crib.view(ADA, Channel.STDIO), SurfaceKind.SEARCH)
    change(crib)
    after = surface_of(crib.view(ADA, Channel.STDIO), SurfaceKind.SEARCH)
    assert (before.listing != after.listing) is listing_changes
    assert (before.version != after.version) is listing_changes


def test_legacy_listing_drops_only_an_output_schema_whose_root_is_no_object():
    kept = {"name": "a", "outputSchema": {"type": "object", "properties": {}}}
    assert for_legacy(kept) == kept
    assert for_legacy({"name": "a", "outputSchema": {"type": "array"}, "x": 1}) == {"name": "a", "x": 1}
    assert for_legacy({"name": "a"}) == {"name": "a"}
