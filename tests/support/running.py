"""A broker in the test's own process, without sockets, over a folder that outlives it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from data_folders import with_tables
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings


@asynccontextmanager
async def running(folder: Path, settings: BrokerSettings | None = None) -> AsyncIterator[Broker]:
    broker = await Broker.open(with_tables(folder), settings or BrokerSettings())
    try:
        yield broker
    finally:
        await broker.close()
