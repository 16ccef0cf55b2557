"""Goal: many requests of one client, and one request with many elements, take nobody else's time.

Method: clients of all three protocols ask one thing at a time beside it. The bars here leave room
for a machine that others use too, in the median of what each client waits.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import partial

import pytest

from broker_process import BrokerProcess
from penstock.kafka.wire import api
from penstock.pulsar.wire.pulsar_api_pb2 import CommandSubscribe
from stand import PROTOCOLS, Stand
from wire_clients import (
    PULSAR_CONNECT,
    KafkaWire,
    connect,
    kafka_fetch_fields,
    kafka_request,
    pulsar_request,
)

MEDIAN_SECONDS = 0.05
BUSY_MEDIAN_SECONDS = 0.5
"""What is accepted on a machine that others use too; what is looked for takes seconds."""
ELEMENTS = 99_000
ATTACK_SECONDS = 2

QUIET, QUIET_ELEMENTS, QUIET_SECONDS = 1_000, 400, 1.2
"""Each takes a millisecond at once, after it was held open for more than a second."""
GROWTH_MIB = 40
"""Connections that are taken faster than they are looked at make it tens of megabytes a second."""

TLS_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(40)
METADATA = kafka_request("Metadata", 5, topics=[], allow_auto_topic_creation=False)


WAITING_FETCH = kafka_request(
    "Fetch", 11, **kafka_fetch_fields("probe", 0, max_wait_ms=1000, min_bytes=1 << 30)
)


def waiting_fetches(stand: Stand, broker: BrokerProcess) -> None:
    for _ in range(40):
        stand.flood(stand.connect(broker, "kafka"), WAITING_FETCH + METADATA * 999)


def endless_pipeline(stand: Stand, broker: BrokerProcess) -> None:
    connection = stand.connect(broker, "kafka")
    stand.drain(connection)
    stand.flood(connection, kafka_request("ApiVersions", 0) * 1_000, times=1_000)


def connections_with_a_backlog(stand: Stand, broker: BrokerProcess) -> None:
    stand.allow("more lines like this were left out")
    backlog = WAITING_FETCH * 990

    def work() -> None:
        while not stand.stopping.wait(0.003):
            with contextlib.suppress(OSError), contextlib.closing(connect(broker.kafka)) as one:
                one.sendall(backlog)

    stand.run(work)


def quiet_connections_that_ask_at_once(stand: Stand, broker: BrokerProcess) -> None:
    topic = api("Metadata").request.MetadataRequestTopic
    topics = [topic(name=f"t{number}") for number in range(QUIET_ELEMENTS)]
    asked = kafka_request("Metadata", 5, topics=topics, allow_auto_topic_creation=False)
    quiet = [stand.connect(broker, "kafka") for _ in range(QUIET)]
    time.sleep(QUIET_SECONDS)

    def work() -> None:
        for connection in quiet:
            connection.sendall(asked)

    stand.run(work)


def connections_that_go_at_once(stand: Stand, broker: BrokerProcess) -> None:
    stand.allow("this is TLS", "more lines like this were left out")

    def work(protocol: str) -> None:
        while not stand.stopping.is_set():
            one = connect(getattr(broker, protocol))
            with contextlib.suppress(OSError), contextlib.closing(one):
                one.sendall(TLS_HELLO)

    for protocol in 2 * PROTOCOLS:
        stand.run(partial(work, protocol))


def subscriptions_that_come_and_go(stand: Stand, broker: BrokerProcess) -> None:
    topic = "persistent://public/default/probe-partition-0"
    for client in range(4):
        connection = stand.connect(broker, "pulsar")
        connection.sendall(PULSAR_CONNECT)
        stand.drain(connection)
        asked = [
            pulsar_request(
                "SUBSCRIBE",
                topic=topic,
                subscription=f"{client}-{number}",
                subType=CommandSubscribe.Shared,
                consumer_id=number,
                request_id=2 * number,
            )
            + pulsar_request("UNSUBSCRIBE", consumer_id=number, request_id=2 * number + 1)
            for number in range(500)
        ]
        stand.flood(connection, b"".join(asked), times=1_000)


def many_elements(stand: Stand, broker: BrokerProcess) -> None:
    topic = api("Metadata").request.MetadataRequestTopic
    topics = [topic(name=f"t{number}") for number in range(ELEMENTS)]
    connection = stand.connect(broker, "kafka")
    stand.drain(connection)
    asked = kafka_request("Metadata", 5, topics=topics, allow_auto_topic_creation=False)
    stand.flood(connection, asked, times=10)


@pytest.mark.parametrize(
    ("attack", "median_seconds"),
    [
        (endless_pipeline, BUSY_MEDIAN_SECONDS),
        (many_elements, BUSY_MEDIAN_SECONDS),
        pytest.param(connections_with_a_backlog, BUSY_MEDIAN_SECONDS, marks=pytest.mark.soak),
        pytest.param(subscriptions_that_come_and_go, BUSY_MEDIAN_SECONDS, marks=pytest.mark.soak),
        pytest.param(
            quiet_connections_that_ask_at_once, BUSY_MEDIAN_SECONDS, marks=pytest.mark.soak
        ),
        *(
            pytest.param(attack, MEDIAN_SECONDS, marks=pytest.mark.soak)
            for attack in (waiting_fetches, endless_pipeline, many_elements)
        ),
    ],
)
def test_nobody_takes_the_time_of_others(
    stand: Stand, attack: Callable[[Stand, BrokerProcess], None], median_seconds: float
) -> None:
    """Attack: requests that wait with many behind them, a pipeline without end, one huge request,
    connections without end, each with a thousand requests, those that are held open and then ask
    all at once, and subscriptions that come and go by the thousand.

    Bar: the median of what each neighbour waits stays small.
    """
    broker = stand.start()
    with stand.probing(broker) as probes:
        with probes.attack():
            attack(stand, broker)
            time.sleep(ATTACK_SECONDS)
        during = probes.latencies("attack")
        for protocol in PROTOCOLS:
            assert during.of("ping", protocol).p50 < median_seconds, probes.report()


def test_connections_that_go_at_once_wait_outside(stand: Stand) -> None:
    """Attack: six clients connect without end, each time with half a handshake of TLS, and go.

    Bar: as above; and what the broker has no time for waits in the operating system's line.
    """
    broker = stand.start()
    with stand.probing(broker) as probes:
        stand.watch.reset()
        with probes.attack():
            connections_that_go_at_once(stand, broker)
            time.sleep(ATTACK_SECONDS)
        during = probes.latencies("attack")
        for protocol in PROTOCOLS:
            assert during.of("ping", protocol).p50 < BUSY_MEDIAN_SECONDS, probes.report()
    assert stand.watch.grown_mib < GROWTH_MIB


@pytest.mark.soak
def test_a_producer_waits_for_no_flood(stand: Stand) -> None:
    """Attack: four clients that list a thousand partitions as fast as they can.

    Bar: others wait for a receipt, for which two threads take turns, twelve times as long as for
    an answer from the loop, in the median.
    """
    broker = stand.start("--flush", "written")
    with contextlib.closing(KafkaWire(broker.kafka, "wide")) as kafka:
        kafka.create_topic(1_000)
    listed = pulsar_request("GET_TOPICS_OF_NAMESPACE", request_id=1, namespace="public/default")
    with stand.probing(broker) as probes:
        with probes.attack():
            for _ in range(4):
                connection = stand.connect(broker, "pulsar")
                connection.sendall(PULSAR_CONNECT)
                stand.drain(connection)
                stand.flood(connection, listed, times=10_000)
            time.sleep(2 * ATTACK_SECONDS)
        during = probes.latencies("attack")
        for protocol in PROTOCOLS:
            ping, produce = during.of("ping", protocol), during.of("produce", protocol)
            assert produce.p50 < 12 * ping.p50, probes.report()
