"""A client that goes away while the broker makes what it asked for leaves nothing half made."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from partition_logs import open_logs
from penstock.broker.broker import Broker
from penstock.broker.errors import BrokerError, GroupExistsError, NamespaceExistsError
from penstock.broker.settings import BrokerSettings
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import SubscriptionKind
from penstock.broker.topics.names import NamespaceName, TopicName
from penstock.tasks import all_uninterrupted, begin, uninterrupted

T = TopicName("public", "default", "t")
SHOP = NamespaceName("public", "shop")


async def make_namespace(broker: Broker) -> object:
    found = broker.namespaces.get(SHOP)
    return found or await broker.namespaces.create(SHOP)


async def make_group(broker: Broker) -> object:
    topic = broker.topics.get(T)
    assert topic is not None
    try:
        return broker.topic_groups.get(topic, "g")
    except BrokerError:
        return await broker.topic_groups.create(topic, "g")


async def make_subscription(broker: Broker) -> object:
    topic = broker.topics.get(T)
    assert topic is not None
    partition = topic.partition(0)
    request = SubscribeRequest("s", SubscriptionKind.SHARED, 0)
    found = broker.subscriptions.get(partition, "s")
    return found or await broker.subscriptions.create(partition, request)


@pytest.mark.parametrize("make", [make_namespace, make_group, make_subscription])
async def test_who_comes_after_it_finds_it_or_makes_it(
    tmp_path: Path, make: Callable[[Broker], Awaitable[object]]
) -> None:
    broker = await Broker.open(tmp_path, BrokerSettings())
    await broker.topics.create(T, 1)
    for turns in range(4):
        asking = asyncio.ensure_future(make(broker))
        for _ in range(turns):
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])
    await make(broker)
    await broker.close()
    again = await Broker.open(tmp_path, BrokerSettings())
    await open_logs(again)
    await make(again)
    await again.close()


async def test_a_broker_that_stops_finishes_what_its_clients_have_abandoned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await Broker.open(tmp_path, BrokerSettings())

    async def create_late() -> None:
        await asyncio.sleep(0.1)
        await broker.topics.create(T, 1)

    asking = asyncio.ensure_future(uninterrupted(create_late(), "work", refusals=BrokerError))
    await asyncio.sleep(0)
    asking.cancel()
    await broker.close()
    assert caplog.messages == []
    again = await Broker.open(tmp_path, BrokerSettings())
    assert again.topics.get(T)
    await again.close()


async def test_a_refusal_that_nobody_hears_is_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def refuse(error: Exception) -> None:
        await asyncio.sleep(0)
        raise error

    for error in (BrokerError("it is there"), OSError("no disk")):
        asking = asyncio.ensure_future(uninterrupted(refuse(error), "work", refusals=BrokerError))
        await asyncio.sleep(0)
        asking.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
    assert [record.getMessage() for record in caplog.records] == ["the task work failed"]
    assert caplog.records[0].levelno == logging.ERROR


@pytest.mark.parametrize("turns", range(1, 5))
@pytest.mark.parametrize("kind", [BrokerError, OSError])
async def test_a_failure_is_heard_of_once_whenever_its_caller_leaves(
    caplog: pytest.LogCaptureFixture, kind: type[Exception], turns: int
) -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise kind("there is no place")

    asking = asyncio.ensure_future(uninterrupted(fail(), "work", refusals=BrokerError))
    for _ in range(turns):
        await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    await all_uninterrupted()
    was_raised = not asking.cancelled() and isinstance(asking.exception(), kind)
    del asking
    gc.collect()
    logged = ["the task work failed"] if kind is OSError and not was_raised else []
    assert [record.getMessage() for record in caplog.records] == logged


@pytest.mark.parametrize("kind", [BrokerError, OSError])
async def test_a_failure_of_what_nobody_came_to_await_is_heard_of_once(
    caplog: pytest.LogCaptureFixture, kind: type[Exception]
) -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise kind("there is no place")

    begin(uninterrupted(fail(), "work", refusals=BrokerError))
    await all_uninterrupted()
    await asyncio.sleep(0)
    gc.collect()
    logged = ["the task work failed"] if kind is OSError else []
    assert [record.getMessage() for record in caplog.records] == logged


async def test_a_refusal_that_came_before_who_asked_began_to_wait_is_for_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def refuse() -> None:
        await asyncio.sleep(0)
        raise BrokerError("it is gone")

    async def refuse_together() -> None:
        await asyncio.gather(refuse(), refuse())

    rest = begin(refuse_together())
    for _ in range(5):
        await asyncio.sleep(0)
    del rest
    gc.collect()
    assert caplog.messages == []


@pytest.mark.parametrize("make", [make_namespace, make_group, make_subscription])
async def test_those_who_make_it_in_one_turn_make_it_once(
    tmp_path: Path, make: Callable[[Broker], Awaitable[object]]
) -> None:
    broker = await Broker.open(tmp_path, BrokerSettings())
    await broker.topics.create(T, 1)
    made = await asyncio.gather(*(make(broker) for _ in range(3)), return_exceptions=True)
    refusals = [each for each in made if isinstance(each, Exception)]
    assert {type(each) for each in refusals} <= {NamespaceExistsError, GroupExistsError}
    assert await make(broker) in made
    await broker.close()
    again = await Broker.open(tmp_path, BrokerSettings())
    await open_logs(again)
    await make(again)
    await again.close()
