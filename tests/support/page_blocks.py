"""The blocks of code on a page.

All are run, but for those that say in a comment right above them, which no reader sees, why not:

    <!-- not run: installs packages -->
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUNNABLE = ("python", "sh", "toml", "json")
FENCE = re.compile(r" *```(.*)$")
MARK = re.compile(r" *<!-- not run: (.+) -->$")
INDENTED = re.compile(r"(?: {4}|\t)\S")
ITEM = re.compile(r" *(?:[-*]|\d+\.) ")


@dataclass(frozen=True)
class Block:
    """What stands between two fences."""

    line: int
    language: str
    text: str
    not_run: str
    """Why it is not run; empty where it is."""


def blocks_of(page: str) -> list[Block]:
    """Return all blocks, in order."""
    blocks: list[Block] = []
    lines = iter(enumerate(page.splitlines(), 1))
    above = ""
    for number, line in lines:
        if fence := FENCE.match(line):
            inside = "".join(f"{each}\n" for each in _until_fence(lines))
            mark = MARK.match(above)
            blocks.append(Block(number, fence[1], inside, mark[1] if mark else ""))
        above = line
    return blocks


def faults_of(page: str) -> list[str]:
    """Say which code would not be run by anybody, and does not say why."""
    blocks = blocks_of(page)
    marks = sum(bool(MARK.match(line)) for line in page.splitlines())
    faults = [
        f"line {block.line}: nothing runs {block.language!r}; if it can't be run, say why"
        for block in blocks
        if not block.not_run and block.language not in RUNNABLE
    ]
    if marks != sum(bool(block.not_run) for block in blocks):
        faults.append("a mark does not stand right above a block")
    return faults + [f"line {line}: code without a fence" for line in _indented(page)]


def _until_fence(lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    for _, line in lines:
        if FENCE.match(line):
            return
        yield line


def _indented(page: str) -> Iterator[int]:
    """Yield where indented blocks begin; in a list, what is indented is a paragraph."""
    lines = iter(enumerate(page.splitlines(), 1))
    is_list, above = False, ""
    for number, line in lines:
        if FENCE.match(line):
            list(_until_fence(lines))
        elif INDENTED.match(line) and not above and not is_list:
            yield number
        is_list = bool(ITEM.match(line)) or (is_list and line[:1] in ("", " "))
        above = line
