"""Retrieval: which permitted tool could help with a task.

    Index.build(tools) ─▶ Index.view(permitted) ─▶ View.search(task, queries) ─▶ Ranking

Read `index.py` first, then `search.py`. Below it: `text` and `tokenize` (words), `document` (what is searched of a
tool), `lexical` (BM25F), `dense` (vectors), `naming` (tools that the task names), `decompose` (parts of a task),
`fusion`, `confidence`. `words` holds the word lists, `storage` the file on disk.

Everything a view answers is a function of the permitted tools alone (I1) and deterministic (I11).
"""
