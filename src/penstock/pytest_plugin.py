"""Fixtures for tests that need a broker; docs/testing.md shows them.

pytest loads this module wherever Penstock is installed, so that it imports what it needs late.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from penstock.testing import Penstock

_BROKER: Final = pytest.StashKey["Penstock"]()
_numbers: Final = itertools.count(1)
_NAME_SIZE_MAX: Final = 100


@pytest.fixture(scope="session")
def penstock(request: pytest.FixtureRequest) -> Iterator[Penstock]:
    """A broker for all tests of this process; faults that a test leaves are gone after it."""
    from penstock.testing import Penstock

    with Penstock() as broker:
        request.config.stash[_BROKER] = broker
        try:
            yield broker
        finally:
            del request.config.stash[_BROKER]


@pytest.fixture
def penstock_topic(penstock_topic_factory: Callable[..., str]) -> str:
    """The name of a topic that is the test's own: there before it, and deleted after it."""
    return penstock_topic_factory()


@pytest.fixture
def penstock_topic_factory(
    request: pytest.FixtureRequest, penstock: Penstock
) -> Iterator[Callable[..., str]]:
    """Make topics of the test's own: `penstock_topic_factory(partitions=3)` returns a name."""
    made: list[str] = []

    def make(partitions: int = 1) -> str:
        name = _name(request)
        penstock.create_topic(name, partitions)
        made.append(name)
        return name

    yield make
    for name in made:
        penstock.delete_topic(name)


@pytest.fixture
def penstock_namespace(request: pytest.FixtureRequest, penstock: Penstock) -> Iterator[str]:
    """The name of a namespace of the test's own, deleted after it with its topics.

    Pulsar's clients find it as `public/NAME`; to Iggy's it is the stream NAME.
    """
    name = _name(request)
    yield name
    penstock.delete_namespace(name)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Keep a test's faults from the next one."""
    broker = item.config.stash.get(_BROKER, None)
    if broker is not None:
        broker.clear_faults()


def _name(request: pytest.FixtureRequest) -> str:
    """Return a name that no other test of this broker has, and that shows which test's it is."""
    readable = re.sub(r"[^a-zA-Z0-9_-]+", "-", request.node.name)[:_NAME_SIZE_MAX].strip("-")
    return f"{readable}-{next(_numbers)}"
