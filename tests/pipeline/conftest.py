"""One local Spark for all tests of the source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.pipeline.session import open_session

TIMEOUT_SECONDS = 600
"""A call to Spark that is cut short leaves its answer for the next one, in whichever test."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = open_session("penstock tests", "local[2]")
    yield session
    session.stop()
