"""Clients of apache-iggy, real ones and one without a socket, and streams of a test's own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest
from apache_iggy import IggyClient

from broker_process import BrokerProcess
from iggy_clients import connected
from iggy_dialog import Dialog
from penstock.broker.broker import Broker

_numbers = itertools.count()


@pytest.fixture
async def client(shared_server: BrokerProcess) -> IggyClient:
    return await connected(shared_server.iggy)


@pytest.fixture
async def dialog(broker: Broker) -> AsyncIterator[Dialog]:
    """Today's dialect, spoken to a session, whose topic is there."""
    made = Dialog(broker)
    await made.set_up()
    yield made
    made.session.close()


@pytest.fixture
def stream() -> str:
    """A name that no other test uses; the stream is not there yet."""
    return f"stream-{next(_numbers)}"


@pytest.fixture
async def topic(client: IggyClient, stream: str) -> str:
    """A topic of two partitions in `stream`."""
    await client.create_stream(stream)
    await client.create_topic(stream, "orders", 2)
    return "orders"
