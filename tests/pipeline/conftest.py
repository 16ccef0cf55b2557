"""Tests that start Spark, or use the one of this run: `spark`, in tests/conftest.py."""

from __future__ import annotations

from pathlib import Path

import pytest

TIMEOUT_SECONDS = 600
"""A call to Spark that is cut short leaves its answer for the next one, in whichever test."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        here = Path(__file__).parent in item.path.parents
        if here and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))
