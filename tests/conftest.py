"""What all tests share: brokers to talk to, and Hypothesis' profiles."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvloop
from hypothesis import HealthCheck, settings

from broker_process import BrokerProcess
from data_folders import with_tables
from faulty_files import FaultyFileSystem
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.log import Flusher
from penstock.metadata import sqlite
from stalls import busy_stalls
from stand import Stand

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Hundreds of brokers, commands and Spark's workers start: each would compile Penstock first.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The same examples in every run of a test; the long runs look for new ones.
settings.register_profile(
    "test",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "soak", settings.get_profile("test"), derandomize=False, max_examples=5_000
)
settings.register_profile("interop", settings.get_profile("soak"), max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "test"))


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run asynchronous tests on the loop that the broker runs on."""
    return {"uvloop": uvloop.new_event_loop}


def pytest_collection() -> None:
    """Search for no garbage while tests are collected: all that is made lasts."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Have the garbage collector pass over what all tests share: it lasts as long as they do."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def metadata_waits_for_no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have databases and folders made in the test's own process, which no power cut ends, at once.

    Thousands of brokers are opened in it, and each waits for the disk eight times before anything
    is asked of it. What is written to logs does wait, and so do brokers in processes of their own.
    """
    monkeypatch.setattr(sqlite, "_SYNCHRONOUS", "OFF")
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    """A broker in the test's own process, without sockets."""
    opened = await Broker.open(with_tables(tmp_path), BrokerSettings())
    yield opened
    await opened.close()


@pytest.fixture
def flusher() -> Iterator[Flusher]:
    flusher = Flusher(threads=2)
    yield flusher
    flusher.close()


@pytest.fixture
def disk() -> FaultyFileSystem:
    return FaultyFileSystem()


def check_stalls(request: pytest.FixtureRequest, log: str) -> None:
    """Fail a test whose broker kept everybody waiting, unless it is marked with `stalls`."""
    if request.node.get_closest_marker("stalls") is None:
        assert busy_stalls(log) == []


@pytest.fixture
def start_server(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[..., BrokerProcess]]:
    """Start brokers with flags of the test's own, each over a data folder of its own."""
    started: list[BrokerProcess] = []

    def start(*flags: str) -> BrokerProcess:
        folder = tmp_path / f"broker-{len(started)}"
        folder.mkdir()
        broker = BrokerProcess(folder, *flags)
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        broker.end()
    for broker in started:
        check_stalls(request, broker.log)


@pytest.fixture
def server(start_server: Callable[..., BrokerProcess]) -> BrokerProcess:
    """A fresh broker that the test may kill and restart."""
    return start_server()


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for all tests that use topics of their own and leave it running."""
    broker = BrokerProcess(tmp_path_factory.mktemp("shared-broker"))
    broker.start()
    yield broker
    broker.end()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one local Spark of all tests: to start it takes longer than most of them do."""
    from penstock.pipeline.session import open_session

    session = open_session("penstock tests", "local[2]")
    yield session
    session.stop()


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    """A test stand; what a broker must hold after every scenario is checked at its end."""
    made = Stand(tmp_path)
    try:
        yield made
        made.check()
    finally:
        made.close()


@pytest.fixture(autouse=True)
def shared_server_goes_on(request: pytest.FixtureRequest) -> Iterator[None]:
    """Blame the test that held the shared broker up."""
    if "shared_server" not in request.fixturenames:
        yield
        return
    server: BrokerProcess = request.getfixturevalue("shared_server")
    before = len(server.log)
    yield
    check_stalls(request, server.log[before:])
