"""Goal: nobody has to wonder what a broker is doing."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from patience import until, wait_until
from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.storage import Storage
from penstock.log.layout import DATABASE_FILE
from penstock.metadata.store import MetadataStore
from penstock.slow_steps import blocked_by, waiting_for

ORDERS = TopicName("public", "default", "orders")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(limits, "SLOW_STEP_SECONDS", 0.025)
    caplog.set_level(logging.INFO)


def said(caplog: pytest.LogCaptureFixture, what: str) -> list[str]:
    lines = [record.getMessage() for record in caplog.records]
    return [line.removeprefix(what).strip() for line in lines if line.startswith(what)]


def assert_said_once(caplog: pytest.LogCaptureFixture, what: str) -> None:
    first, last = said(caplog, what)
    assert first == "takes a while"
    assert last.startswith("took ")


async def test_what_is_awaited_long_is_said_at_once_and_in_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with waiting_for("counting %d sheep", 3):
        await until(lambda: said(caplog, "counting 3 sheep"))
        assert said(caplog, "counting 3 sheep") == ["takes a while"]
    assert_said_once(caplog, "counting 3 sheep")


async def test_what_is_quick_is_not_said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SLOW_STEP_SECONDS", 60)
    threads = threading.active_count()
    with blocked_by("a wink"), waiting_for("a nod"):
        pass
    assert caplog.records == []
    assert threading.active_count() == threads


def test_what_blocks_long_is_said_even_where_it_fails(caplog: pytest.LogCaptureFixture) -> None:
    def lift() -> None:
        with blocked_by("lifting"):
            wait_until(lambda: said(caplog, "lifting"))
            raise OverflowError

    with pytest.raises(OverflowError):
        lift()
    assert_said_once(caplog, "lifting")


def test_a_database_that_somebody_else_has_locked(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    file = tmp_path / DATABASE_FILE
    MetadataStore.open(file).close_now()
    caplog.clear()
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    what = f"opening the database {file}"

    def release() -> None:
        wait_until(lambda: said(caplog, what))
        other.close()

    releasing = threading.Thread(target=release)
    releasing.start()
    MetadataStore.open(file).close_now()
    releasing.join()
    assert_said_once(caplog, what)


async def test_a_log_that_takes_long_to_open_and_folders_that_do_to_remove(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await Broker.open(tmp_path, BrokerSettings())
    await broker.topics.create(ORDERS, 1)
    await broker.close()
    opening = "opening the log of orders-0"
    removing = "removing the folders of deleted topics (1 now)"
    _slow_down(monkeypatch, "_open_log", lambda: said(caplog, opening))
    _slow_down(monkeypatch, "_remove_topics", lambda: said(caplog, removing))
    broker = await Broker.open(tmp_path, BrokerSettings())
    topic = broker.topics.get(ORDERS)
    assert topic is not None
    await topic.partitions[0].opened()
    await broker.topics.delete(topic)
    await until(lambda: said(caplog, removing)[1:])
    await broker.close()
    assert_said_once(caplog, opening)
    assert_said_once(caplog, removing)


def _slow_down(
    monkeypatch: pytest.MonkeyPatch, name: str, until_it_is_so: Callable[[], object]
) -> None:
    real = getattr(Storage, name)

    def slow(*arguments: object) -> object:
        wait_until(until_it_is_so)
        return real(*arguments)

    monkeypatch.setattr(Storage, name, slow)
