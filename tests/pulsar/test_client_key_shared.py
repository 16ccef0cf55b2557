"""Consumers of real clients that share keys: each key has its messages at one of them, in order."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable

import pulsar
import pytest

from broker_process import BrokerProcess
from patience import wait_until
from pulsar_messages import RECEIVE_MS, expect_nothing

KEY_SHARED = pulsar.ConsumerType.KeyShared
KEYS = [f"key-{number}" for number in range(10)]


def policy(*ranges: tuple[int, int], in_order: bool = True) -> pulsar.ConsumerKeySharedPolicy:
    mode = pulsar.KeySharedMode.Sticky if ranges else pulsar.KeySharedMode.AutoSplit
    return pulsar.ConsumerKeySharedPolicy(mode, not in_order, list(ranges) or None)


def subscribe(
    client: pulsar.Client, topic: str, name: str, *ranges: tuple[int, int], **options: int
) -> pulsar.Consumer:
    return client.subscribe(
        topic,
        "sub",
        KEY_SHARED,
        consumer_name=name,
        initial_position=pulsar.InitialPosition.Earliest,
        negative_ack_redelivery_delay_ms=100,
        key_shared_policy=policy(*ranges),
        **options,
    )


def publish(client: pulsar.Client, topic: str, rounds: range, *, by_key: bool) -> None:
    batches = pulsar.BatchingType.KeyBased
    producer = client.create_producer(topic, batching_enabled=by_key, batching_type=batches)
    for number in rounds:
        for key in KEYS:
            producer.send_async(b"%d" % number, lambda *_: None, partition_key=key)
    producer.flush()
    producer.close()


def drain(consumers: list[pulsar.Consumer], count: int) -> dict[str, list[tuple[str, int]]]:
    """Receive so many messages; return of each key who got which, in the order of receiving."""
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    while count > 0:  # Where more are there than are expected, each consumer gets one of them.
        for consumer in consumers:
            try:
                message = consumer.receive(20)
            except pulsar.Timeout:
                continue
            consumer.acknowledge(message)
            found[message.partition_key()].append((consumer.consumer_name(), int(message.data())))
            count -= 1
    return found


@pytest.mark.parametrize("by_key", [False, True], ids=["singles", "batches by key"])
def test_each_key_goes_to_one_consumer_in_order(
    client: pulsar.Client, topic: str, by_key: bool
) -> None:
    consumers = [subscribe(client, topic, name) for name in ("c1", "c2")]
    publish(client, topic, range(30), by_key=by_key)
    found = drain(consumers, 300)
    owners = {key: {name for name, _ in got} for key, got in found.items()}
    assert all(len(each) == 1 for each in owners.values())
    assert set.union(*owners.values()) == {"c1", "c2"}
    assert all([number for _, number in got] == list(range(30)) for got in found.values())


def test_delayed_messages_of_a_key_come_when_they_are_due(
    client: pulsar.Client, topic: str
) -> None:
    due, found = 0.0, dict[str, list[tuple[str, int]]]()
    for delay_ms in (400, 4_000, 40_000):  # A busy machine may need as long for what comes before.
        name = f"{topic}-{delay_ms}"
        consumers = [subscribe(client, name, each) for each in ("c1", "c2")]
        producer = client.create_producer(name, batching_enabled=False)
        due = 1000 * time.time() + delay_ms
        for number in range(2):
            for key in KEYS:
                later = {} if number else {"deliver_at": int(due)}
                producer.send(b"%d" % number, partition_key=key, **later)
        found = drain(consumers, 10)
        if 1000 * time.time() < due:
            break
    assert all([number for _, number in got] == [1] for got in found.values())
    for key, got in drain(consumers, 10).items():
        found[key] += got
    assert 1000 * time.time() >= due
    for got in found.values():
        assert [number for _, number in got] == [1, 0]
        assert len({name for name, _ in got}) == 1


def test_who_joins_gets_a_key_once_the_other_is_done_with_it(
    client: pulsar.Client, topic: str
) -> None:
    first = subscribe(client, topic, "c1")
    publish(client, topic, range(1), by_key=False)
    held = [first.receive(RECEIVE_MS) for _ in KEYS]
    second = subscribe(client, topic, "c2")
    publish(client, topic, range(1, 2), by_key=False)
    expect_nothing(second)
    for message in held:
        first.acknowledge(message)
    found = drain([first, second], len(KEYS))
    assert {name for got in found.values() for name, _ in got} == {"c1", "c2"}
    second.close()
    publish(client, topic, range(2, 3), by_key=False)
    found = drain([first], len(KEYS))
    assert set(found) == set(KEYS)


def test_what_is_given_back_comes_before_what_is_new(client: pulsar.Client, topic: str) -> None:
    consumer = subscribe(client, topic, "c1")
    publish(client, topic, range(1), by_key=False)
    for _ in KEYS:
        consumer.negative_acknowledge(consumer.receive(RECEIVE_MS))
    again = [consumer.receive(RECEIVE_MS) for _ in KEYS]
    assert {message.redelivery_count() for message in again} == {1}
    assert [message.partition_key() for message in again] == KEYS
    for message in again:
        consumer.acknowledge(message)
    expect_nothing(consumer)


def test_consumers_choose_their_keys(client: pulsar.Client, topic: str) -> None:
    lower = subscribe(client, topic, "lower", (0, 32_767))
    with pytest.raises(pulsar.ConsumerAssignError):
        subscribe(client, topic, "other", (32_767, 40_000))
    upper = subscribe(client, topic, "upper", (32_768, 65_535))
    publish(client, topic, range(3), by_key=True)
    found = drain([lower, upper], 30)
    assert all([number for _, number in got] == [0, 1, 2] for got in found.values())
    assert {name for got in found.values() for name, _ in got} == {"lower", "upper"}


def test_keys_are_kept_through_a_restart(
    server: BrokerProcess, connect: Callable[[str], pulsar.Client], topic: str
) -> None:
    names = ("c1", "c2")
    client = connect(server.pulsar)
    consumers = [subscribe(client, topic, name) for name in names]
    publish(client, topic, range(5), by_key=False)
    found = drain(consumers, 20)
    for consumer in consumers:
        consumer.close()
    server.restart()
    client = connect(server.pulsar)
    consumers = [subscribe(client, topic, name) for name in names]
    publish(client, topic, range(5, 10), by_key=False)
    for key, got in drain(consumers, 80).items():
        found[key] += got
    assert all([number for _, number in got] == list(range(10)) for got in found.values())


@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.soak)])
def test_nothing_is_lost_and_keys_stay_in_order_over_kills(
    server: BrokerProcess, connect: Callable[[str], pulsar.Client], topic: str, kills: int
) -> None:
    """What is received for the first time comes in order; some may come again."""
    consumers = [
        subscribe(connect(server.pulsar), topic, name, receiver_queue_size=50)
        for name in ("c1", "c2", "c3")
    ]
    producer = connect(server.pulsar).create_producer(
        topic, batching_enabled=False, send_timeout_millis=0, max_pending_messages=10_000
    )
    acknowledged: set[tuple[str, int]] = set()
    seen: dict[str, dict[int, None]] = {key: {} for key in KEYS}
    rounds = 60

    def publish_each(numbers: range) -> None:
        for number in numbers:
            for key in KEYS:
                producer.send_async(
                    b"%d" % number,
                    lambda result, _, key=key, number=number: (
                        acknowledged.add((key, number)) if result == pulsar.Result.Ok else None
                    ),
                    partition_key=key,
                )

    def receive_some(count: int) -> None:
        wanted = sum(map(len, seen.values())) + count
        while sum(map(len, seen.values())) < wanted:
            for consumer in consumers:
                with contextlib.suppress(pulsar.Timeout):
                    message = consumer.receive(5)
                    seen[message.partition_key()].setdefault(int(message.data()))
                    consumer.acknowledge(message)

    for kill in range(kills):
        first, half = kill * rounds, kill * rounds + rounds // 2
        publish_each(range(first, half))
        receive_some(rounds * len(KEYS) // 4)
        publish_each(range(half, first + rounds))
        server.kill9()
        server.start()
        receive_some(rounds * len(KEYS) // 2)
    everything = kills * rounds * len(KEYS)
    receive_some(everything - sum(map(len, seen.values())))
    producer.flush()
    wait_until(lambda: len(acknowledged) == everything)
    assert all(list(each) == list(range(kills * rounds)) for each in seen.values())
