"""Goal: who speaks an older dialect of Iggy, for which nobody has to log in, harms nobody."""

from __future__ import annotations

import contextlib
import socket
import struct
import time

import pytest

from broker_process import BrokerProcess
from older_iggy import named, request_frame
from patience import PATIENCE_SECONDS
from stand import Stand
from wire_clients import IggyWire, KafkaWire

MIB = 1 << 20
BUDGET_MIB = 256
TOPIC = "large-iggy"
PLACE = named("default") + named(TOPIC)
EVERYTHING = struct.pack("<BQIB", 1, 0, 10_000_000, 0)
POLL_OF_2023 = request_frame(
    100, struct.pack("<BI", 1, 1) + PLACE + struct.pack("<I", 1) + EVERYTHING
)
LOGIN_OF_0_8 = request_frame(38, b"\4iggy\4iggy" + struct.pack("<I6sI", 6, b"0.10.0", 0))
POLL_OF_0_8 = request_frame(
    100, b"\1\1\4" + struct.pack("<I", 1) + PLACE + struct.pack("<BI", 1, 0) + EVERYTHING
)
SEND_OF_2023 = request_frame(101, PLACE + b"\2\4" + struct.pack("<I", 1))
LYING = [
    # More of a message, of its headers, of an index than there is.
    SEND_OF_2023[4:] + bytes(16) + struct.pack("<I", 2**32 - 1),
    SEND_OF_2023[4:] + bytes(16) + struct.pack("<II", 0, 2**32 - 1) + b"x",
    struct.pack("<II", 101, 18 + len(TOPIC)) + PLACE + b"\2\4" + struct.pack("<II", 0, 2**32 - 1),
    struct.pack("<I", 100) + PLACE,
]


def fill(broker: BrokerProcess) -> None:
    """Write 20 MB of what polls are answered with."""
    with contextlib.closing(KafkaWire(broker.kafka, TOPIC)) as kafka:
        kafka.create_topic()
    with contextlib.closing(IggyWire(broker.iggy, TOPIC)) as iggy:
        for _ in range(40):
            iggy.produce(bytes(500_000))


def never_read(stand: Stand, broker: BrokerProcess, sent: bytes) -> None:
    connection = stand.connect(broker, "iggy")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stand.flood(connection, sent)


@pytest.mark.soak
def test_polls_that_are_never_read_stay_within_the_budget(stand: Stand) -> None:
    """Attack: 40 connections without a login and 20 with one, each with 20 polls of 16 MiB.

    Bar: 1.2 x the budget and 100 MiB, and a new client is served.
    """
    stand.allow("more lines like this were left out", "the event loop was held up")
    broker = stand.start("--memory-bytes", f"{BUDGET_MIB}MiB", "--flush", "written")
    fill(broker)
    stand.watch.reset()
    for _ in range(40):
        never_read(stand, broker, POLL_OF_2023 * 20)
    for _ in range(20):
        never_read(stand, broker, LOGIN_OF_0_8 + POLL_OF_0_8 * 20)
    time.sleep(10)
    with contextlib.closing(KafkaWire(broker.kafka, "after", timeout=PATIENCE_SECONDS)) as kafka:
        kafka.create_topic()
        assert kafka.produce(b"fine") == 0
    assert stand.watch.peak_mib < 1.2 * BUDGET_MIB + 100


def test_lying_counts_cost_their_connection_and_no_memory(stand: Stand) -> None:
    """Attack: requests of both older dialects that say to have what they have not, ten times each.

    Bar: each is refused or ends its connection; 20 MiB, and others are served.
    """
    stand.allow("no request of Iggy's", "more lines like this were left out")
    broker = stand.start("--flush", "written")
    with contextlib.closing(KafkaWire(broker.kafka, TOPIC)) as kafka:
        kafka.create_topic()
        frames = [struct.pack("<I", len(each)) + each for each in LYING]
        for login in (b"", LOGIN_OF_0_8):
            # The first ones load what takes sends apart.
            answered(broker, login, frames)
        stand.watch.reset()
        for _ in range(10):
            for login in (b"", LOGIN_OF_0_8):
                for frame in frames:
                    answered(broker, login, [frame])
        assert kafka.produce(b"fine") == 0
    assert stand.watch.grown_mib < 20


def answered(broker: BrokerProcess, login: bytes, frames: list[bytes]) -> None:
    """Send frames; each is answered with a refusal, or the connection ends."""
    host, _, port = broker.iggy.rpartition(":")
    for frame in frames:
        with socket.create_connection((host, int(port)), PATIENCE_SECONDS) as connection:
            connection.sendall(login + frame)
            heard = b""
            wanted = (12 if login else 0) + 8
            while len(heard) < wanted and (data := connection.recv(64)):
                heard += data
            assert heard[wanted - 8 : wanted - 4] != bytes(4), heard
