"""What the pages name is there: files, methods in them, what links lead to, commands and flags."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from page_blocks import PAGES, ROOT
from penstock.cli.commands import LoadedCommands

PACKAGE = ROOT / "src" / "penstock"
PLACEHOLDER = re.compile(r"NN|name\.py|<")
PATH = re.compile(r"`((?:[\w<>]+/)+\w+\.py)`")
NAME = re.compile(r"`([A-Z]\w+)\.(\w+)`[^`]{0,40}\(`((?:\w+/)+\w+\.py)`\)")
COMMAND = re.compile(r"`penstock ([a-z][^`]*)`")
FLAG = re.compile(r"--?[a-zA-Z][\w-]*")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def page(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=page)
def test_files_that_are_named_are_there(path: Path) -> None:
    named = {found for found in PATH.findall(path.read_text()) if not PLACEHOLDER.search(found)}
    missing = {one for one in named if not ((PACKAGE / one).exists() or (ROOT / one).exists())}
    assert not missing


@pytest.mark.parametrize("path", PAGES, ids=page)
def test_links_lead_somewhere(path: Path) -> None:
    assert not [
        link for link in LINK.findall(path.read_text()) if not (path.parent / link).exists()
    ]


def test_methods_on_the_way_of_a_request_are_where_the_page_says() -> None:
    found = NAME.findall((ROOT / "docs" / "architecture.md").read_text())
    assert len(found) >= 4
    for owner, method, file in found:
        text = (PACKAGE / file).read_text()
        assert re.search(rf"^class {owner}\b", text, re.MULTILINE), (owner, file)
        assert re.search(rf"^    (?:async )?def {method}\(", text, re.MULTILINE), (owner, method)


@pytest.mark.parametrize("path", PAGES, ids=page)
def test_commands_in_a_sentence_are_there_with_their_flags(path: Path) -> None:
    assert [found for found in COMMAND.findall(path.read_text()) if not is_known(found)] == []


@pytest.mark.parametrize("words", ["nothing", "topic nothing", "topic list --nothing", "serve -X"])
def test_a_command_that_is_not_there_is_found(words: str) -> None:
    assert not is_known(words)


def is_known(text: str) -> bool:
    name, *words = shlex.split(text)
    command = LoadedCommands().get(name)
    if words and hasattr(command, "commands"):
        command = command.commands.get(words[0])
    if command is None:
        return False
    flags = {flag for option in command.params for flag in option.opts} | {"--help"}
    return {word for word in words if FLAG.fullmatch(word)} <= flags
