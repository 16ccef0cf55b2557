"""Pulsar clients, real ones and one without a socket, and topics of a test's own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator

import pulsar
import pytest

from broker_process import BrokerProcess
from patience import PATIENCE_SECONDS
from penstock.broker.broker import Broker
from pulsar_peer import Peer

_numbers = itertools.count()


@pytest.fixture
async def peer(broker: Broker) -> AsyncIterator[Peer]:
    """A connection without a socket, which has said CONNECT."""
    peer = Peer(broker)
    await peer.connect()
    yield peer
    if not peer.lost:
        peer.lose()


@pytest.fixture
def connect() -> Iterator[Callable[[str], pulsar.Client]]:
    """Make clients that are closed at the end of the test."""
    made: list[pulsar.Client] = []

    def new(url: str) -> pulsar.Client:
        client = pulsar.Client(
            url,
            operation_timeout_seconds=PATIENCE_SECONDS,
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        )
        made.append(client)
        return client

    yield new
    for client in made:
        client.shutdown()


@pytest.fixture
def client(shared_server: BrokerProcess, connect: Callable[[str], pulsar.Client]) -> pulsar.Client:
    return connect(shared_server.pulsar)


@pytest.fixture
def topic() -> str:
    return f"topic-{next(_numbers)}"
