"""Goal: all attacks at once, on a slow disk, are still only attacks.

Each of them alone is tested where what it attacks is tested; here they come together, as strangers
do, while well-behaved clients of the three protocols work on.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable

import pytest

from faulty_broker import FaultyBroker
from penstock.iggy.wire.commands import Command
from penstock.kafka.wire import api
from stand import Stand
from wire_clients import (
    PULSAR_CONNECT,
    KafkaWire,
    connect,
    iggy_login,
    iggy_poll,
    iggy_request,
    kafka_fetch_fields,
    kafka_request,
    pulsar_request,
)

MIB = 1 << 20
BUDGET_MIB = 256
MEMORY_MIB_MAX = 1.2 * BUDGET_MIB + 100
UNAVAILABLE_SECONDS_MAX = 2.0
ATTACK_SECONDS = 20

Attack = Callable[[Stand, FaultyBroker], None]


def waiting_fetches(stand: Stand, broker: FaultyBroker) -> None:
    fields = kafka_fetch_fields("quiet", 0, max_wait_ms=60_000)
    requests = kafka_request("Fetch", 11, **fields) + kafka_request("Metadata", 5, topics=[]) * 999
    for _ in range(20):
        stand.flood(stand.connect(broker, "kafka"), requests)


def small_requests(stand: Stand, broker: FaultyBroker) -> None:
    for protocol, opening, request in (
        ("kafka", b"", kafka_request("ApiVersions", 0)),
        ("pulsar", PULSAR_CONNECT, pulsar_request("PING")),
        ("iggy", iggy_login(), iggy_request(Command.PING)),
    ):
        connection = stand.connect(broker, protocol)
        stand.drain(connection)
        connection.sendall(opening)
        stand.flood(connection, request * 1000, times=100_000)


def large_requests(stand: Stand, broker: FaultyBroker) -> None:
    topic = api("Metadata").request.MetadataRequestTopic
    names = [topic(name=f"no-such-{number}") for number in range(50_000)]
    request = kafka_request("Metadata", 5, topics=names, allow_auto_topic_creation=False)
    connection = stand.connect(broker, "kafka")
    stand.drain(connection)
    stand.flood(connection, request, times=100)


def answers_that_nobody_reads(stand: Stand, broker: FaultyBroker) -> None:
    fields = kafka_fetch_fields("large", 0, partition_max_bytes=55 * MIB, min_bytes=55 * MIB)
    fetch = kafka_request("Fetch", 11, **fields)
    for _ in range(20):
        stand.flood(stand.connect(broker, "kafka"), fetch * 40)
    poll = iggy_request(Command.POLL_MESSAGES, iggy_poll("default", "large", 0, 1_000_000), 2)
    for _ in range(20):
        stand.flood(stand.connect(broker, "iggy"), iggy_login() + poll)


def frames_that_never_end(stand: Stand, broker: FaultyBroker) -> None:
    for _ in range(10):
        stand.flood(stand.connect(broker, "kafka"), (99 * MIB).to_bytes(4) + bytes(98 * MIB))
    for protocol in ("kafka", "pulsar", "iggy"):
        for _ in range(50):
            stand.drip(stand.connect(broker, protocol), bytes([0, 0, 1, 0]) + bytes(300))


def knocking(stand: Stand, broker: FaultyBroker) -> None:
    def knock() -> None:
        while not stand.stopping.wait(0.005):
            connect(broker.kafka).close()

    stand.run(knock)


def junk(stand: Stand, broker: FaultyBroker) -> None:
    def talk() -> None:
        for protocol in itertools.cycle(("kafka", "pulsar", "iggy")):
            if stand.stopping.wait(0.005):
                return
            with contextlib.suppress(ConnectionError):
                connection = connect(getattr(broker, protocol))
                connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
                connection.close()

    stand.run(talk)


ATTACKS: list[Attack] = [
    waiting_fetches,
    small_requests,
    large_requests,
    answers_that_nobody_reads,
    frames_that_never_end,
    knocking,
    junk,
]
PASSES = (
    "left out|HTTP|did not arrive whole|memory is short|event loop|suppressed|not shown|closed:"
)
"""Log lines that attackers cause."""


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("disk_ms", [0, 20])
def test_all_attacks_at_once_on_a_slow_disk(stand: Stand, disk_ms: float) -> None:
    """Attack: all of the above for 20 s, with and without a disk that takes 20 ms a call.

    Bar: well-behaved clients are never without a success for 2 s, nothing fails for them, memory
    stays within the budget's bar, and afterwards all is as before.
    """
    stand.allow(PASSES)
    broker = FaultyBroker(stand.fresh_folder(), "--memory-bytes", f"{BUDGET_MIB}MiB")
    stand.add(broker)
    fill(broker)
    with stand.probing(broker) as probes:
        with probes.baseline():
            time.sleep(3)
        stand.watch.reset()
        with broker.disk.slow(disk_ms), probes.attack():
            for attack in ATTACKS:
                attack(stand, broker)
            time.sleep(ATTACK_SECONDS)
            stand.watch.sample()
        peak_mib = stand.watch.peak_mib
        stand.release()
        with probes.span("after"):
            time.sleep(3)
        assert not probes.latencies("attack").failures
        assert max(probes.unavailable("attack").values()) < UNAVAILABLE_SECONDS_MAX, probes.report()
        assert probes.latencies("after").of("ping").p50 < probes.latencies("baseline").p99
    assert peak_mib < MEMORY_MIB_MAX


def fill(broker: FaultyBroker) -> None:
    KafkaWire(broker.kafka, "quiet").create_topic()
    large = KafkaWire(broker.kafka, "large")
    large.create_topic()
    for _ in range(60):
        large.produce(bytes(MIB - 1000))
