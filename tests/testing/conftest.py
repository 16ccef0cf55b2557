"""A broker inside the tests' own process, as `penstock.testing` starts it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from penstock.testing import Penstock

_numbers = itertools.count()


@pytest.fixture(scope="module")
def shared() -> Iterator[Penstock]:
    """A broker for all tests of a file."""
    with Penstock() as broker:
        yield broker


@pytest.fixture
def inside(shared: Penstock) -> Iterator[Penstock]:
    """The file's broker, without the faults of other tests."""
    yield shared
    shared.clear_faults()


@pytest.fixture
def topic() -> str:
    """A name that no other test has."""
    return f"topic-{next(_numbers)}"
