"""Goal: docs/kafka.md says what is registered."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.kafka.handlers import HANDLERS

PAGE = Path(__file__).parents[2] / "docs" / "kafka.md"
ROW = re.compile(r"^\| (\d+) \| (\w+) \| (\d+)-(\d+) \|", re.MULTILINE)


def test_the_table_of_apis_is_what_is_served() -> None:
    told = {
        (int(key), name, int(first), int(last))
        for key, name, first, last in ROW.findall(PAGE.read_text(encoding="utf-8"))
    }
    served = {
        (key, handler.api.name, handler.versions.first, handler.versions.last)
        for key, handler in HANDLERS.items()
    }
    assert told == served


def test_each_handler_lies_in_the_file_of_its_number() -> None:
    for key, handler in HANDLERS.items():
        snake = re.sub(r"(?<!^)(?=[A-Z])", "_", handler.api.name).lower()
        assert handler.handle.__module__ == f"penstock.kafka.handlers.api_{key:02d}_{snake}"
