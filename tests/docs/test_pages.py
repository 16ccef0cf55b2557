"""What the pages name is there: files of the source, methods in them, and what links lead to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from page_blocks import PAGES, ROOT

PACKAGE = ROOT / "src" / "penstock"
PLACEHOLDER = re.compile(r"NN|name\.py|<")
PATH = re.compile(r"`((?:[\w<>]+/)+\w+\.py)`")
NAME = re.compile(r"`([A-Z]\w+)\.(\w+)`[^`]{0,40}\(`((?:\w+/)+\w+\.py)`\)")
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
