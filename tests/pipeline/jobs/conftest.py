from __future__ import annotations

import pytest

from penstock.pipeline.jobs import backfill, job, small


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a run take no notice of the Spark of other tests, and start none."""

    def refuse(*_: object) -> None:
        raise AssertionError("no Spark was to be started")

    for module in (small, backfill):
        monkeypatch.setattr(module, "is_open", lambda: False)
    for module in (job, backfill):
        monkeypatch.setattr(module, "open_session", refuse)
