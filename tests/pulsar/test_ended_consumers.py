"""Goal: what ends with a consumer is freed at once, and is not left to the collector of garbage,
which would have to look through it beside all that is alive.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from penstock.broker.broker import Broker
from penstock.broker.subscriptions.engine import Engine
from penstock.broker.subscriptions.push import Push
from penstock.broker.subscriptions.subscription import Subscription
from penstock.pulsar.consumer import PulsarConsumer
from penstock.pulsar.wire import pulsar_api_pb2 as api
from pulsar_peer import Command, Peer
from receivers import settled

Subscribe = api.CommandSubscribe


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def alive(monkeypatch: pytest.MonkeyPatch) -> weakref.WeakSet[object]:
    """All that is made for a consumer from now on, as far as it is there."""
    made: weakref.WeakSet[object] = weakref.WeakSet()
    for kind in (Engine, PulsarConsumer, Push, Subscription):
        begin = kind.__init__

        def noted(self: object, *given: object, begin=begin, **named: object) -> None:
            made.add(self)
            begin(self, *given, **named)

        monkeypatch.setattr(kind, "__init__", noted)
    return made


def names(alive: weakref.WeakSet[object]) -> list[str]:
    return sorted(type(each).__name__ for each in alive)


async def ended(peer: Peer, command: Command) -> None:
    """Have a command carried out that ends a consumer."""
    await peer.ask(command, Command.SUCCESS)
    await settled()


@pytest.mark.parametrize(
    "kind", [Subscribe.Exclusive, Subscribe.Failover, Subscribe.Shared, Subscribe.Key_Shared]
)
async def test_nothing_is_left_of_what_unsubscribes(
    peer: Peer, alive: weakref.WeakSet[object], kind: int
) -> None:
    await peer.subscribe("t", subType=kind)
    peer.flow(1)
    assert names(alive) == ["Engine", "PulsarConsumer", "Push", "Subscription"]
    unsubscribe = api.CommandUnsubscribe(consumer_id=1, request_id=90)
    await ended(peer, Command(type=Command.UNSUBSCRIBE, unsubscribe=unsubscribe))
    assert names(alive) == []


async def test_nothing_is_left_of_a_reader_that_is_closed(
    peer: Peer, alive: weakref.WeakSet[object]
) -> None:
    await peer.subscribe("t", durable=False)
    close = api.CommandCloseConsumer(consumer_id=1, request_id=90)
    await ended(peer, Command(type=Command.CLOSE_CONSUMER, close_consumer=close))
    assert names(alive) == []


async def test_a_subscription_is_left_of_a_client_that_goes(
    broker: Broker, alive: weakref.WeakSet[object]
) -> None:
    peer = Peer(broker)
    await peer.connect()
    await peer.subscribe("t", subType=Subscribe.Shared)
    peer.lose()
    await settled()
    assert names(alive) == ["Engine", "Subscription"]
