"""Other people's searches, one file each, run by `worker.py` in an interpreter of their own. Nothing here is imported.

A file imports its package and the standard library, nothing of ours, and has

    opened(tools, options) -> an object with
        search(task, k) -> ids, best first
        overhead()      -> definitions that every context holds besides what is found

`tools` are objects with `id` (unique, the name where names do not repeat), `name`, `description` and `input_schema`.
"""
