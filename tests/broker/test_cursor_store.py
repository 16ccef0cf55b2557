"""Cursors are written soon, again where a write failed, and never forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from patience import PATIENCE_SECONDS, until
from penstock.broker.subscriptions import store as module
from penstock.broker.subscriptions.cursor import Cursor
from penstock.broker.subscriptions.store import CursorStore
from penstock.metadata.errors import MetadataError
from penstock.metadata.subscriptions import CursorRow

if TYPE_CHECKING:
    from penstock.broker.subscriptions.subscription import Subscription
    from penstock.metadata.subscriptions import SubscriptionRepository


class Repository:
    """Keeps what was saved; fails as often as it is told to."""

    def __init__(self) -> None:
        self.saved: list[CursorRow] = []
        self.failures = 0
        self.calls = 0

    async def save(self, cursors: Iterable[CursorRow]) -> None:
        self.calls += 1
        rows = list(cursors)
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise MetadataError("the disk is full")
        self.saved += rows


@pytest.fixture
def repository() -> Repository:
    return Repository()


@pytest.fixture
def store(repository: Repository) -> CursorStore:
    return CursorStore(cast("SubscriptionRepository", repository))


@pytest.fixture
def subscription() -> Subscription:
    # What a store looks at, and what can be in a set.
    class Moved(SimpleNamespace):
        __hash__ = object.__hash__

    partition = SimpleNamespace(id=1)
    return cast("Subscription", Moved(partition=partition, name="sub", cursor=Cursor(0)))


async def test_a_save_in_the_turn_in_which_the_last_one_ends_is_written(
    store: CursorStore, subscription: Subscription
) -> None:
    again: list[asyncio.Future[Any]] = []
    await asyncio.sleep(0)
    store._begin().add_done_callback(lambda _: again.append(store._begin()))
    await store.save(subscription)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not again:
            await asyncio.sleep(0)
        await again[0]
    await store.close()


async def test_what_was_not_written_is_written_again(
    store: CursorStore,
    repository: Repository,
    subscription: Subscription,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    subscription.cursor.acknowledge(3, 5)
    repository.failures = 2
    with pytest.raises(MetadataError):
        await store.save(subscription)
    await until(lambda: repository.saved)
    assert repository.saved == [CursorRow(1, "sub", 0, 0, [(0, 0b11000)])]
    await store.save(subscription)
    assert repository.saved[1].blocks == []
    await store.close()


async def test_nothing_is_written_after_the_end(
    store: CursorStore,
    repository: Repository,
    subscription: Subscription,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The database is closed by then."""
    monkeypatch.setattr(module, "SAVE_DELAY_SECONDS", 0.001)
    store.save_soon(subscription)
    store.forget(subscription)
    await store.close()
    await asyncio.sleep(0.01)
    assert repository.calls == 0
