"""What docs/evals.md shows is read by the program as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from toolcrib.evals.cases import case_of, read_cases
from toolcrib.evals.gates import read_gate
from toolcrib.evals.summary import REFUSAL, columns

PAGE = (Path(__file__).parents[2] / "docs" / "evals.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_cases_of_the_paper_are_cases() -> None:
    text, cases = block("json"), []
    while text.strip():
        row: Any
        row, end = json.JSONDecoder().raw_decode(text.lstrip())
        text = text.lstrip()[end:]
        cases.append(case_of(row, where="docs/evals.md"))
    assert [case.answerable for case in cases] == [True, True, False]


def test_the_thresholds_of_the_paper_are_thresholds(tmp_path: Path) -> None:
    (tmp_path / "gate.toml").write_text(block("toml"), encoding="utf-8")
    assert {threshold.table[0] for threshold in read_gate(tmp_path / "gate.toml")} == {
        "metrics", "tags", "latency_ms", "compare",
    }  # fmt: skip


def test_every_figure_is_explained() -> None:
    for name in {re.sub(r"@\d+", "@k", name) if "ndcg" not in name else name for name in columns((1, 5))} | {*REFUSAL}:
        assert f"`{name}`" in PAGE, name


def test_the_cases_of_the_freight_example_name_its_tools_and_people() -> None:
    folder = Path(__file__).parents[2] / "examples" / "freight"
    catalog = "".join(path.read_text(encoding="utf-8") for path in (folder / "freight_desk" / "catalog").glob("*.py"))
    cases = read_cases(folder / "cases.jsonl")
    assert len(cases) >= 10
    for case in cases:
        assert (folder / "callers" / f"{case.caller}.json").is_file()
        for tool_id in {*case.forbid, *(tool_id for tools in case.expect or () for tool_id in tools)}:
            assert f'"{tool_id.removeprefix("freight.")}"' in catalog, tool_id


def test_the_python_of_the_paper_compiles() -> None:
    compile(block("python"), "docs/evals.md", "exec")
