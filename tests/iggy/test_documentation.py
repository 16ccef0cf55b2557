"""docs/iggy.md names every command, where it belongs."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.iggy.handlers import HANDLERS
from penstock.iggy.handlers.unavailable import UNAVAILABLE
from penstock.iggy.wire.dialect_e import COMMANDS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "iggy.md").read_text(encoding="utf-8")
PAGE_OF_2023 = (DOCS / "iggy-protocol.md").read_text(encoding="utf-8")


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


def test_page_of_2023_goes_through_its_commands_and_names_tests_that_there_are() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+) \|", PAGE_OF_2023, re.MULTILINE)
    assert {int(code): name for code, name in rows} == {
        code: command.name for code, command in COMMANDS.items()
    }
    tests = Path(__file__).with_name("test_dialect_e.py").read_text(encoding="utf-8")
    for named in re.findall(r"`(test_\w+)`", PAGE_OF_2023):
        assert f"def {named}(" in tests
