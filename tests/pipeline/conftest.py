"""Tests that start Spark, or use the one of this run: `spark`, in tests/conftest.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.pipeline.jobs import backfill, job, small

TIMEOUT_SECONDS = 600
"""A call to Spark that is cut short leaves its answer for the next one, in whichever test."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        here = Path(__file__).parent in item.path.parents
        if here and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a run take no notice of the Spark of other tests, and start none."""

    def refuse(*_: object) -> None:
        raise AssertionError("no Spark was to be started")

    for module in (small, backfill):
        monkeypatch.setattr(module, "is_open", lambda: False)
    for module in (job, backfill):
        monkeypatch.setattr(module, "open_session", refuse)
