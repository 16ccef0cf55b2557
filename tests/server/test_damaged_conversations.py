"""Goal: no bytes end the broker, show a bug in it, or cost another connection anything.

Method: requests that real clients once sent are replayed in any order with bytes changed, cut and
added, over many connections, while a client of good manners works on.
"""

from __future__ import annotations

import random
import re
import socket
from pathlib import Path

import psutil
import pytest

from broker_process import BrokerProcess
from penstock.clients.kafka.client import KafkaClient
from penstock.clients.kafka.record_batch import Record, encode_batch

TESTS = Path(__file__).parents[1]
RECORDED = {
    "kafka": ["kafka_wire/golden/confluent_kafka.hex", "kafka_wire/golden/kafka_python.hex"],
    "pulsar": ["pulsar/golden/pulsar_client.hex"],
    "iggy": ["iggy/golden/apache-iggy-0.9.0.hex"],
}
OPENING = {"kafka": r"ApiVersions", "pulsar": r"CONNECT ", "iggy": r"C "}
"""How the lines begin that a conversation has to open with; of several the first one."""
HEADER = {"kafka": 8, "pulsar": 8, "iggy": 256}
"""Bytes before what a request asks."""
CONVERSATIONS = 120
REQUESTS_EACH = 12
MEMORY_MIB_MAX = 64


def recorded(protocol: str) -> list[tuple[str, bytes]]:
    lines = [line for name in RECORDED[protocol] for line in (TESTS / name).open()]
    parts = [line.strip().rpartition(" ") for line in lines if line.strip()]
    return [(f"{name} ", bytes.fromhex(text)) for name, _, text in parts if name != "S"]


def damaged(request: bytes, header: int, chance: random.Random) -> bytes:
    changed = bytearray(request)
    # The header is kept mostly, or nothing behind it would ever be looked at.
    first = header if header < len(changed) else 0
    for _ in range(chance.choice([0, 1, 1, 2, 8])):
        position = chance.randrange(0 if chance.random() < 0.1 else first, len(changed))
        changed[position] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
    if chance.random() < 0.05:
        del changed[chance.randrange(len(changed)) :]
    if chance.random() < 0.05:
        changed += chance.randbytes(chance.randrange(40))
    return bytes(changed)


def conversation(protocol: str, chance: random.Random) -> bytes:
    requests = recorded(protocol)
    opening = next(data for name, data in requests if re.match(OPENING[protocol], name))
    chosen = [chance.choice(requests)[1] for _ in range(REQUESTS_EACH)]
    return opening + b"".join(damaged(request, HEADER[protocol], chance) for request in chosen)


def say(address: str, data: bytes) -> None:
    """Send everything, and take what is answered until nothing comes or the broker closes."""
    host, _, port = address.removeprefix("pulsar://").partition(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.settimeout(0.05)
        try:
            connection.sendall(data)
            while connection.recv(1 << 16):
                pass
        except (TimeoutError, ConnectionError):
            return


@pytest.mark.parametrize("protocol", RECORDED)
def test_damaged_requests_show_no_bug_and_harm_nobody(server: BrokerProcess, protocol: str) -> None:
    chance = random.Random(20130101)
    with KafkaClient(server.kafka) as client:
        client.create_topic("healthy", 1)
        for number in range(CONVERSATIONS):
            say(getattr(server, protocol), conversation(protocol, chance))
            record = Record(b"still here", timestamp_ms=1)
            assert client.produce("healthy", 0, encode_batch([record])) == number
    assert " ERROR " not in server.log
    assert server.stop() == 0


def test_lying_lengths_cost_no_memory(server: BrokerProcess) -> None:
    process = psutil.Process(server.pid)
    before = process.memory_info().rss
    announced = {
        server.kafka: (90 << 20).to_bytes(4) + bytes.fromhex("0000000a00000001ffff"),
        server.pulsar.removeprefix("pulsar://"): (5 << 20).to_bytes(4) + (100).to_bytes(4),
        server.iggy: bytes(48) + (60 << 20).to_bytes(4, "little") + bytes(204),
    }
    connections = []
    for address, data in announced.items():
        host, _, port = address.partition(":")
        for _ in range(20):
            connections.append(socket.create_connection((host, int(port))))
            connections[-1].sendall(data)
    with KafkaClient(server.kafka) as client:
        client.create_topic("healthy", 1)
    assert process.memory_info().rss - before < MEMORY_MIB_MAX << 20
    for connection in connections:
        connection.close()
