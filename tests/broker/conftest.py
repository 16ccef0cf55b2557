"""What logs in memory are made of: a disk that may fail, and what flushes to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faulty_files import FaultyFileSystem
from penstock.log import Flusher


@pytest.fixture
def flusher() -> Iterator[Flusher]:
    flusher = Flusher(threads=2)
    yield flusher
    flusher.close()


@pytest.fixture
def disk() -> FaultyFileSystem:
    return FaultyFileSystem()
