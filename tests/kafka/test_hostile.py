"""Goal: no bytes end the broker or cost another connection anything.

Method: raw sockets against a broker as users run it, while a client of good manners works.
"""

from __future__ import annotations

import random
import socket
import struct
import threading

import pytest

from broker_process import BrokerProcess
from patience import PATIENCE_SECONDS
from penstock.clients.kafka.client import KafkaClient
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.handlers import HANDLERS

SECONDS = PATIENCE_SECONDS


def connect(server: BrokerProcess) -> socket.socket:
    host, port = server.kafka.split(":")
    return socket.create_connection((host, int(port)), SECONDS)


def closed_after(server: BrokerProcess, data: bytes) -> bool:
    """Whether the broker answers `data` with the end of the connection."""
    with connect(server) as connection:
        connection.sendall(data)
        return connection.recv(100) == b""


def request(key: int, version: int, body: bytes = b"") -> bytes:
    frame = struct.pack(">hhih", key, version, 1, -1) + body
    return struct.pack(">i", len(frame)) + frame


HOSTILE = {
    "negative size": b"\xff\xff\xff\xff",
    "huge size": b"\x7f\xff\xff\xff",
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303") + bytes(64),
    "no header": struct.pack(">i", 2) + b"\0\0",
    "unknown API": request(999, 0),
    "unknown version": request(3, 99, b"\0"),
    "cut off": request(3, 1, struct.pack(">i", 5)),
    "lying count": request(3, 1, struct.pack(">i", 0x7FFFFFFF)),
    "negative length": request(10, 0, struct.pack(">h", -5)),
    "lying client id": struct.pack(">ihhih", 10, 3, 1, 1, 30_000),
    "endless varint": request(18, 3, b"\xff" * 50),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_request_closes_the_connection(shared_server: BrokerProcess, name: str) -> None:
    assert closed_after(shared_server, HOSTILE[name])


def test_the_log_names_what_came(server: BrokerProcess) -> None:
    closed_after(server, HOSTILE["HTTP"])
    server.wait_for_log("HTTP")
    closed_after(server, HOSTILE["TLS"])
    server.wait_for_log("TLS")
    closed_after(server, HOSTILE["unknown version"])
    server.wait_for_log("Metadata version 99")
    assert "Traceback" not in server.log


def test_others_work_on_while_noise_comes(server: BrokerProcess) -> None:
    served = [(key, handler.versions) for key, handler in HANDLERS.items()]
    noise = random.Random(1)

    def make_noise() -> None:
        for _ in range(500):
            key, versions = noise.choice(served)
            body = noise.randbytes(noise.randrange(200))
            version = noise.randint(versions.first, versions.last)
            with connect(server) as connection:
                connection.sendall(request(key, version, body))

    noisy = threading.Thread(target=make_noise)
    with KafkaClient(server.kafka, timeout_s=SECONDS) as client:
        client.create_topic("quiet", 1)
        noisy.start()
        written = 0
        while noisy.is_alive():
            assert client.produce("quiet", 0, encode_batch([Record(b"v")])) == written
            written += 1
        assert client.fetch("quiet", 0, 0).high_watermark == written > 0
    assert "a bug in the broker" not in server.log
    assert "Traceback" not in server.log
