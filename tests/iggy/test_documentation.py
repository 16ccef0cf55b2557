"""docs/iggy.md names every command, where it belongs."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.iggy.handlers import HANDLERS
from penstock.iggy.handlers.unavailable import UNAVAILABLE

PAGE = (Path(__file__).parents[2] / "docs" / "iggy.md").read_text(encoding="utf-8")


def test_page_names_what_is_served_and_what_is_not() -> None:
    commands = PAGE.partition("## Commands")[2]
    served, _, refused = commands.partition("These are answered")
    rows = re.findall(r"^\| (\d+) \| (\w+) \|", served, re.MULTILINE)
    expected = {command.value: command.name for command in HANDLERS if command not in UNAVAILABLE}
    assert {int(code): name for code, name in rows} == expected
    for command in UNAVAILABLE:
        assert command.name in refused


def test_each_command_has_a_file_of_its_own() -> None:
    folder = Path(__file__).parents[2] / "src" / "penstock" / "iggy" / "handlers"
    files = {
        int(match[1]): match[2].upper()
        for file in folder.glob("code_*.py")
        if (match := re.fullmatch(r"code_(\d+)_(\w+)", file.stem))
    }
    assert files == {
        command.value: command.name for command in HANDLERS if command not in UNAVAILABLE
    }
