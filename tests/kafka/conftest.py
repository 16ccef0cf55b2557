"""A broker and a client on it, both in the test's own process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_dialog import Dialog, kafka_broker
from penstock import records
from penstock.broker.broker import Broker


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    await records.prepare()  # As after a client's first Produce, which waits for it.
    async with kafka_broker(tmp_path) as broker:
        yield broker


@pytest.fixture
def dialog(broker: Broker) -> Dialog:
    return Dialog(broker)
