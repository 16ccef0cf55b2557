"""Functions and files stay small enough to be read; who does not is listed here by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FUNCTION_LINES_MAX = 70
SHORT_FUNCTION_LINES = 20
SHORT_FUNCTIONS_SHARE = 0.80
FILE_LINES_MAX = 500

LONG_FILES: set[str] = set()
"""Paths from the root. The list only shrinks."""


def own_files(*folders: str) -> Iterator[Path]:
    """Python files that people wrote; what a compiler wrote is left out."""
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            if not file.name.endswith("_pb2.py"):
                yield file


@cache
def functions(file: Path) -> list[tuple[str, int]]:
    """Each function with its number of lines; nested ones count on their own as well."""
    return list(_functions(file))


def _functions(file: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            place = f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"
            yield place, node.end_lineno - node.lineno + 1


def test_no_function_is_long() -> None:
    long = [
        f"{place}: {lines} lines"
        for file in own_files("src", "tests", "benchmarks")
        for place, lines in functions(file)
        if lines > FUNCTION_LINES_MAX
    ]
    assert not long, "\n".join(long)


def test_most_functions_are_short() -> None:
    lengths = [lines for file in own_files("src") for _, lines in functions(file)]
    short = sum(lines <= SHORT_FUNCTION_LINES for lines in lengths)
    assert short >= SHORT_FUNCTIONS_SHARE * len(lengths), f"{short} of {len(lengths)}"


def test_no_file_is_long() -> None:
    long = set()
    for file in own_files("src", "tests", "benchmarks"):
        if len(file.read_text(encoding="utf-8").splitlines()) > FILE_LINES_MAX:
            long.add(str(file.relative_to(ROOT)))
    assert long == LONG_FILES
