"""Goal: docs/operations.md lists every setting and every limit as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import limits
from penstock.server.config import SETTINGS, Setting

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def setting_rows() -> Iterator[str]:
    for setting in SETTINGS:
        yield f"| `{setting.key}` | {shown(setting)} | {setting.help} |"


def shown(setting: Setting) -> str:
    return "" if setting.default == "" else f"`{str(setting.default).lower()}`"


def limit_rows() -> Iterator[str]:
    for name, limit in vars(limits).items():
        if isinstance(limit, limits.Limit):
            yield f"| {name} | {limit:,} {limit.unit} | {limit.protects} | {limit.when_hit} |"


@pytest.mark.parametrize("rows", [setting_rows, limit_rows])
def test_the_table_is_that_of_the_source(rows) -> None:
    expected = list(rows())
    text = PAGE.read_text(encoding="utf-8")
    table = "\n".join(expected)
    assert table in text, f"the table should be:\n{table}"
