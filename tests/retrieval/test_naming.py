from __future__ import annotations

import pytest

from tests.retrieval.making import ids, search, tool

TOOLS = (
    tool("wiki.search", "Search pages."),
    tool("wiki.export", "Export a page."),
    tool("crm.search", "Search customers."),
    tool("crm.export", "Export the customer table."),
    tool("crm.list_deals", "List deals."),
    tool("code-memory.searchGraph", "Search the code graph."),
    tool("code-memory.trace_path", "Trace a path of calls."),
)


@pytest.mark.parametrize(
    ("task", "first"),
    [
        pytest.param("use crm.export", "crm.export", id="id"),
        pytest.param("please run CRM.Export.", "crm.export", id="id in other case"),
        pytest.param("call wiki/export on the page of customers", "wiki.export", id="server/tool"),
        pytest.param("crm__export", "crm.export", id="server__tool"),
        pytest.param('"wiki.export" the customer table', "wiki.export", id="quoted id"),
        pytest.param("list_deals of customers in the export table", "crm.list_deals", id="identifier"),
        pytest.param("list deals", "crm.list_deals", id="name as words"),
        pytest.param("please list the deals", "crm.list_deals", id="name in a sentence"),
        pytest.param("SearchGraph please: customers", "code-memory.searchGraph", id="camel"),
        pytest.param("search_graph", "code-memory.searchGraph", id="snake for camel"),
    ],
)
def test_named_tool_wins(task: str, first: str) -> None:
    ranking = search(TOOLS, task)

    assert ids(ranking)[0] == first
    assert ranking.hits[0].named
    assert ranking.hits[0].confidence == ranking.confidence == 1.0


def test_several_named_tools_come_in_the_order_named() -> None:
    ranking = search(TOOLS, "trace_path then `searchGraph` and crm.list_deals")

    assert ids(ranking)[:3] == ["code-memory.trace_path", "code-memory.searchGraph", "crm.list_deals"]
    assert [hit.named for hit in ranking.hits[:4]] == [True, True, True, False]


def test_ordinary_word_names_no_tool_but_the_server_word_breaks_the_tie() -> None:
    ranking = search(TOOLS, "search the wiki for vacation policy")

    assert ids(ranking)[0] == "wiki.search"
    assert not any(hit.named for hit in ranking.hits)


_ORDINARY = ("up-to-date", "real-time", "GitHub", "YouTube", "COVID-19", "iPhone", "Node.js", "24/7")
_ARTICLES = tool("desk.find_article", "Find an article about a subject.")


@pytest.mark.parametrize("word", _ORDINARY)
def test_a_word_of_ordinary_language_names_no_tool(word: str) -> None:
    tools = (tool(f"strange.{word}", "Does something else altogether."), _ARTICLES)

    ranking = search(tools, f"find an article about {word} things for my reading list")
    assert not any(hit.named for hit in ranking.hits)
    assert ids(search(tools, f'use "{word}" now'))[0] == f"strange.{word}"


@pytest.mark.parametrize("token", ["create_issue", "createIssue", "GetWeather", "resolve-library-id", "list-issues"])
def test_what_only_a_program_is_called_names_its_tool(token: str) -> None:
    ranking = search((tool(f"one.{token}", "Something."), _ARTICLES), f"try {token} on the article about a subject")

    assert (ids(ranking)[0], ranking.hits[0].named) == (f"one.{token}", True)
