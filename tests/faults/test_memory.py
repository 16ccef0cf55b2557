"""Goal: whatever clients make the broker hold stays within its budget, and others go on."""

from __future__ import annotations

import contextlib
import socket
import time

import pytest

from penstock.iggy.wire.commands import Command
from penstock.kafka.wire import api
from penstock.limits import KAFKA_REQUEST_BYTES
from stand import Stand
from wire_clients import (
    EARLIEST_ID,
    PULSAR_CONNECT,
    KafkaWire,
    iggy_login,
    iggy_poll,
    iggy_request,
    kafka_fetch_fields,
    kafka_request,
    pulsar_api,
    pulsar_request,
)

MIB = 1 << 20
BUDGET_MIB = 64
BAR_MIB = 1.2 * BUDGET_MIB + 100
SLOWER = 2.0

FETCH_55_MIB = kafka_request(
    "Fetch",
    11,
    **kafka_fetch_fields(
        "large",
        0,
        partition_max_bytes=1 << 30,
        max_bytes=1 << 30,
        min_bytes=1 << 30,
        max_wait_ms=1,
    ),
)
POLL_16_MIB = iggy_request(
    Command.POLL_MESSAGES, iggy_poll("default", "large-iggy", 0, 10_000_000), 2
)
UNREAD = dict.fromkeys((socket.SO_RCVBUF,), 4096)


@pytest.fixture
def broker(stand: Stand):
    """A broker of the least budget with a topic that is larger, written by its reader's kind."""
    stand.allow("memory is short", "did not arrive whole")
    broker = stand.start("--memory-bytes", f"{BUDGET_MIB}MiB", "--flush", "written")
    with contextlib.closing(KafkaWire(broker.kafka, "large")) as kafka:
        kafka.create_topic()
        for _ in range(70):
            kafka.produce(bytes(MIB - 1000))
    return broker


def fill_iggy(broker) -> None:
    from wire_clients import IggyWire

    with contextlib.closing(KafkaWire(broker.kafka, "large-iggy")) as kafka:
        kafka.create_topic()
    with contextlib.closing(IggyWire(broker.iggy, "large-iggy")) as iggy:
        for _ in range(40):
            iggy.produce(bytes(500_000))


def attack_fetches(stand: Stand, broker, clients: int, each: int) -> None:
    for _ in range(clients):
        connection = stand.connect(broker, "kafka")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stand.flood(connection, FETCH_55_MIB * each)


def attack_polls(stand: Stand, broker) -> None:
    for _ in range(60):
        connection = stand.connect(broker, "iggy")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stand.flood(connection, iggy_login() + POLL_16_MIB)


def attack_frames(stand: Stand, broker) -> None:
    """20 connections, each with 98 MiB of a frame of 100 MiB, as far as they get."""
    for _ in range(20):
        connection = stand.connect(broker, "kafka")
        stand.flood(connection, (KAFKA_REQUEST_BYTES - 4).to_bytes(4) + bytes(98 * MIB))


def attack_consumers(stand: Stand, broker) -> None:
    """One connection with 50 Pulsar readers of all permits there are, and none that reads."""
    connection = stand.connect(broker, "pulsar")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    frames = [PULSAR_CONNECT]
    for number in range(50):
        frames.append(
            pulsar_request(
                "SUBSCRIBE",
                topic="large-partition-0",
                subscription=f"unread-{number}",
                consumer_id=number,
                subType=pulsar_api.CommandSubscribe.Exclusive,
                request_id=number,
                durable=False,
                start_message_id=EARLIEST_ID,
            )
        )
        frames.append(pulsar_request("FLOW", consumer_id=number, messagePermits=2**32 - 1))
    stand.flood(connection, b"".join(frames))


def attack_groups(stand: Stand, broker) -> None:
    """Five members with 90 MiB of metadata each."""
    join = api("JoinGroup").request
    for number in range(5):
        metadata = join.JoinGroupRequestProtocol(name="range", metadata=bytes(90 * MIB))
        stand.flood(
            stand.connect(broker, "kafka"),
            kafka_request(
                "JoinGroup",
                2,
                group_id=f"g{number}",
                session_timeout_ms=60_000,
                rebalance_timeout_ms=60_000,
                member_id="",
                protocol_type="consumer",
                protocols=[metadata],
            ),
        )


ATTACKS = {
    "fetches of one connection": lambda stand, broker: attack_fetches(stand, broker, 1, 40),
    "fetches of 50 connections": lambda stand, broker: attack_fetches(stand, broker, 50, 40),
    "polls": attack_polls,
    "frames": attack_frames,
    "consumers": attack_consumers,
    "groups": attack_groups,
}


@pytest.mark.parametrize("name", ATTACKS)
def test_one_attack_stays_within_the_budget(stand: Stand, broker, name: str) -> None:
    """Attack: what a client can have held for it at most. Bar: 1.2 x the budget and 100 MiB."""
    if name == "polls":
        fill_iggy(broker)
    stand.watch.reset()
    ATTACKS[name](stand, broker)
    time.sleep(2)
    assert stand.watch.peak_mib < BAR_MIB
    with contextlib.closing(KafkaWire(broker.kafka, "after", timeout=10)) as kafka:
        kafka.create_topic()
        assert kafka.produce(b"fine") == 0


@pytest.mark.soak
def test_all_attacks_at_once_stay_within_the_budget(stand: Stand, broker) -> None:
    """Attack: all of these at once. Bar: the same, and others' p99 at most twice its baseline."""
    fill_iggy(broker)
    with stand.probing(broker) as probes:
        with probes.baseline():
            time.sleep(5)
        stand.watch.reset()
        with probes.attack():
            for attack in ATTACKS.values():
                attack(stand, broker)
            time.sleep(20)
        assert stand.watch.peak_mib < BAR_MIB, stand.watch.peak_mib
        assert probes.slowdown("ping", 0.99) <= SLOWER, probes.report()
