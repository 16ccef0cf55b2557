"""Peers that mean no good cost their own connection, and nobody else anything."""

from __future__ import annotations

import random
import socket

import pulsar
import pytest

from broker_process import BrokerProcess
from penstock.pulsar.wire import pulsar_api_pb2 as api
from pulsar_messages import payloads, receive
from pulsar_peer import Command, entry, frame_of

CONNECT = frame_of(
    Command(type=Command.CONNECT, connect=api.CommandConnect(client_version="hostile"))
)
PING = frame_of(Command(type=Command.PING, ping=api.CommandPing()))
SEND = frame_of(
    Command(type=Command.SEND, send=api.CommandSend(producer_id=1, sequence_id=0)), entry()
)
CLOSED = {
    "http": b"GET /admin/v2/clusters HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tls": bytes.fromhex("16030100c8010000c40303") + bytes(64),
    "a length of four gigabytes": b"\xff\xff\xff\xff" + bytes(64),
    "a length of zero": bytes(64),
    "nothing before CONNECT": PING,
    "CONNECT twice": CONNECT + CONNECT,
    "a command longer than its frame": CONNECT + b"\0\0\0\x08\0\0\xff\xff\x08\x12\x92\x01",
    "a command that can't be parsed": CONNECT + b"\0\0\0\x06\0\0\0\x02\x08\xff",
    "SEND without a producer": CONNECT + SEND,
    "text that is none": CONNECT + b"\0\0\0\x0e\0\0\0\x0a\x08\x17\xba\x01\x05\x0a\x01\xff\x10\x01",
    "noise": random.Random(1).randbytes(4096),
}


def conversation(server: BrokerProcess, said: bytes) -> bytes:
    """Say something and return all that is answered until the broker closes."""
    host, port = server.pulsar.removeprefix("pulsar://").split(":")
    heard = b""
    with socket.create_connection((host, int(port)), timeout=15) as peer:
        peer.sendall(said)
        try:
            while chunk := peer.recv(65536):
                heard += chunk
        except ConnectionResetError:
            pass
    return heard


@pytest.mark.parametrize("said", CLOSED.values(), ids=CLOSED)
def test_a_connection_that_breaks_the_rules_is_closed(
    shared_server: BrokerProcess, client: pulsar.Client, topic: str, said: bytes
) -> None:
    producer = client.create_producer(topic)
    consumer = client.subscribe(topic, "sub")
    heard = conversation(shared_server, said)
    assert (b"Penstock" in heard) == said.startswith(CONNECT)
    producer.send(b"unharmed")
    assert payloads(receive(consumer, 1)) == [b"unharmed"]


def test_half_a_frame_costs_no_more_than_what_came(
    shared_server: BrokerProcess, client: pulsar.Client, topic: str
) -> None:
    host, port = shared_server.pulsar.removeprefix("pulsar://").split(":")
    peers = [socket.create_connection((host, int(port))) for _ in range(20)]
    for peer in peers:
        peer.sendall(CONNECT + (5 * 1024 * 1024).to_bytes(4) + b"\0\0\0\x08\x08")
    client.create_producer(topic).send(b"unharmed")
    for peer in peers:
        peer.close()
    client.create_producer(topic).send(b"still unharmed")
