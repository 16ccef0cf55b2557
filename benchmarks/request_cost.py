"""What one small request costs the broker: its CPU time, and how many a second one connection gets.

The client sends ready-made frames over a socket, 64 at a time, and only counts the answers, so that
what is measured is the broker's way from a frame to its answer and not a client's. What the event
loop costs by itself is the first line: a server that only sends frames back.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import xxhash

import saved
from broker_cpu import broker_in, cpu_seconds
from penstock.demo.processes import running_broker
from penstock.iggy.wire import frame as iggy_frame
from penstock.iggy.wire import requests as iggy
from penstock.iggy.wire.commands import COMMAND_OF, Command, Operation
from penstock.iggy.wire.identifiers import (
    Consumer,
    ConsumerKind,
    Identifier,
    Partitioning,
    PollingKind,
    PollingStrategy,
)
from penstock.kafka.wire import api, encode_request
from penstock.log.header import Magic, build_header
from penstock.pulsar.wire import frames as pulsar
from penstock.pulsar.wire import pulsar_api_pb2 as pb

WINDOW = 64
ROUNDS = 5
VALUE = bytes(100)
TOPIC = "requests"
IGGY_CLIENT = b"client-of-a-load"


class Measured(NamedTuple):
    """One kind of request."""

    per_second: float
    cpu_microseconds: float


class Peer:
    """A connection that sends frames and counts those that come back."""

    def __init__(
        self,
        address: str,
        reply_size: Callable[[bytes | bytearray, int], int | None],
        own_host: str = "127.0.0.1",
    ) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection(
            (host.rpartition("/")[2], int(port)), source_address=(own_host, 0)
        )
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reply_size = reply_size
        self._rest = bytearray()
        """What came and is no whole frame yet: put together in one piece of memory, or a large one
        would cost the more, the smaller the pieces are that it comes in."""

    def exchange(self, frames: bytes, replies: int) -> None:
        """Send frames and return when so many have come back."""
        self._socket.sendall(frames)
        while replies:
            data = self._rest
            data += self._socket.recv(1 << 18)
            at = 0
            while replies and (size := self._reply_size(data, at)) and at + size <= len(data):
                at += size
                replies -= 1
            del data[:at]


class Load(NamedTuple):
    """One kind of request, and the process that answers it."""

    title: str
    process: int
    peer: Peer
    request: bytes


def length_prefixed(data: bytes | bytearray, at: int) -> int | None:
    """Kafka's and Pulsar's frames begin with their length."""
    return 4 + int.from_bytes(data[at : at + 4], "big") if len(data) >= at + 4 else None


def iggy_sized(data: bytes | bytearray, at: int) -> int | None:
    """Iggy's headers hold the size of the whole frame."""
    return int.from_bytes(data[at + 48 : at + 52], "little") if len(data) >= at + 52 else None


def kafka_batch() -> bytes:
    """One record with a value and nothing else."""
    record = b"\0\0\0\1" + zigzag(len(VALUE)) + VALUE + b"\0"
    body = zigzag(len(record)) + record
    now = time.time_ns() // 1_000_000
    header = build_header(Magic.KAFKA, body, record_count=1, base_timestamp=now, max_timestamp=now)
    return bytes(header) + body


def zigzag(number: int) -> bytes:
    """A small positive varint."""
    doubled = 2 * number
    return bytes([doubled]) if doubled < 128 else bytes([doubled & 127 | 128, doubled >> 7])


def kafka_frame(name: str, version: int, **fields: object) -> bytes:
    request = api(name).request(**fields)
    return b"".join(map(bytes, encode_request(api(name), version, 1, "load", request)))


def kafka_loads(address: str) -> Iterator[tuple[str, Peer, bytes]]:
    peer = Peer(address, length_prefixed)
    types = api("CreateTopics").request
    made = types.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    peer.exchange(kafka_frame("CreateTopics", 5, topics=[made], timeout_ms=1000), 1)
    yield "kafka ApiVersions", peer, kafka_frame("ApiVersions", 0)
    types = api("Produce").request
    for acks, name in ((1, "1"), (-1, "all")):
        part = types.PartitionProduceData(index=0, records=kafka_batch())
        data = types.TopicProduceData(name=TOPIC, partition_data=[part])
        fields = {"acks": acks, "timeout_ms": 1000, "topic_data": [data]}
        yield f"kafka Produce acks={name}", peer, kafka_frame("Produce", 9, **fields)
    types = api("Fetch").request
    for name, offset in (("one batch", 0), ("nothing", 1 << 40)):
        part = types.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1)
        topic = types.FetchTopic(topic=TOPIC, partitions=[part])
        fields = {"max_wait_ms": 0, "min_bytes": 0, "topics": [topic]}
        yield f"kafka Fetch of {name}", peer, kafka_frame("Fetch", 11, **fields)


def pulsar_loads(address: str) -> Iterator[tuple[str, Peer, bytes]]:
    peer = Peer(address, length_prefixed)
    connect = pb.CommandConnect(client_version="load", protocol_version=21)
    peer.exchange(encode(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect)), 1)
    producer = pb.CommandProducer(topic="requests-pulsar", producer_id=1, request_id=1)
    peer.exchange(encode(pb.BaseCommand(type=pb.BaseCommand.PRODUCER, producer=producer)), 1)
    ping = pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing())
    yield "pulsar PING", peer, encode(ping)
    head = b"\x0a\x04load\x10\x00\x18\x01"  # producer_name, sequence_id, publish_time
    entry = struct.pack(">I", len(head)) + head + VALUE
    # A number above those that are looked at: the same frame is sent again and again.
    send = pb.CommandSend(producer_id=1, sequence_id=1 << 60)
    command = pb.BaseCommand(type=pb.BaseCommand.SEND, send=send)
    yield "pulsar SEND", peer, bytes(pulsar.encode_payload_command(command, len(entry))) + entry


def encode(command: pb.BaseCommand) -> bytes:
    return bytes(pulsar.encode_command(command))


def iggy_loads(address: str) -> Iterator[tuple[str, Peer, bytes]]:
    peer = Peer(address, iggy_sized)
    login = iggy.LoginRegister(0x2C00, "load", "1", "iggy", "iggy", "")
    peer.exchange(iggy_request(Command.LOGIN_REGISTER, login.encode(), Operation.REGISTER), 1)
    stream, topic = Identifier("default"), Identifier("requests-iggy")
    create = iggy.CreateTopic(stream, 1, "requests-iggy", {})
    peer.exchange(iggy_request(Command.CREATE_TOPIC, create.encode()), 1)
    yield "iggy PING", peer, iggy_request(Command.PING, b"")
    to = (stream, topic, Partitioning.partition(0))
    send = iggy.SendMessages(22 + 18, *to, 1, memoryview(iggy_batch()))
    size = len(send.encode()) - len(iggy_batch()) - 4
    send = iggy.SendMessages(size, *to, 1, memoryview(iggy_batch()))
    yield "iggy SEND", peer, iggy_request(Command.SEND_MESSAGES, send.encode())
    reader = Consumer(ConsumerKind.CONSUMER, Identifier(1))
    for name, offset in (("one message", 0), ("nothing", 1 << 40)):
        strategy = PollingStrategy(PollingKind.OFFSET, offset)
        poll = iggy.PollMessages(reader, stream, topic, 0, strategy, 1, False)
        yield f"iggy POLL of {name}", peer, iggy_request(Command.POLL_MESSAGES, poll.encode())


def iggy_request(command: Command, body: bytes, operation: int | None = None) -> bytes:
    operations = {known: number for number, known in COMMAND_OF.items()}
    if operation is None:
        operation = operations.get(command, Operation.NON_REPLICATED)
    # Numbered 0, which tells no repetition: the same frame is sent again and again.
    header = iggy_frame.RequestHeader(IGGY_CLIENT, bytes(16), 0, 0, operation, 1, command)
    return b"".join(map(bytes, iggy_frame.build_request(header, body)))


def iggy_batch() -> bytes:
    """One message as a producer sends it."""
    rest = struct.pack("<16sIIIIQ", bytes(15) + b"\7", 0, 0, 0, len(VALUE), 0) + VALUE
    message = struct.pack("<Q", xxhash.xxh3_64_intdigest(rest)) + rest
    facts = (0, 0, 0, 1_700_000_000_000_000, 256 + len(message))
    checksum = xxhash.xxh3_64_intdigest(struct.pack("<QQQQQI", *facts, 1) + message[:8])
    return struct.pack("<QQQQQQI204x", *facts, checksum, 1) + message


@contextmanager
def running_echo() -> Iterator[Load]:
    """Run a server that does next to nothing; yield what asks it."""
    command = [sys.executable, str(Path(__file__).with_name("echo.py"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            peer = Peer(f"127.0.0.1:{server.stdout.readline().strip()}", length_prefixed)
            yield Load("echo, and no broker", server.pid, peer, kafka_frame("ApiVersions", 0))
        finally:
            server.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000, help="of each kind")
    saved.add_flag(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name, running_echo() as echo:
        folder = Path(name)
        with running_broker(folder) as addresses:
            broker = broker_in(folder)
            loads = [echo]
            for protocol, of_protocol in LOADS.items():
                loads += [
                    Load(title, broker, *how) for title, *how in of_protocol(addresses[protocol])
                ]
            measured = measure(loads, arguments.requests)
    print("one connection, 64 requests under way    requests/s   broker CPU us each")
    for title, (speed, cpu) in measured.items():
        print(f"{title:40}{speed:11.0f}{cpu:21.1f}")
    numbers = {
        f"{title}, {unit}": number
        for title, each in measured.items()
        for unit, number in zip(("requests/s", "CPU us"), each, strict=True)
    }
    saved.compare("request-cost", numbers, save=arguments.save)


LOADS = {"kafka": kafka_loads, "pulsar": pulsar_loads, "iggy": iggy_loads}


def measure(loads: Sequence[Load], count: int) -> dict[str, Measured]:
    """Return the medians of some rounds, in which the loads take turns; the first one warms up."""
    rounds = [[run(load, count // ROUNDS) for load in loads] for _ in range(ROUNDS + 1)][1:]
    return {
        load.title: Measured(*map(statistics.median, zip(*found, strict=True)))
        for load, found in zip(loads, zip(*rounds, strict=True), strict=True)
    }


def run(load: Load, count: int) -> Measured:
    window, times = load.request * WINDOW, max(1, count // WINDOW)
    before, began = cpu_seconds(load.process), time.perf_counter()
    for _ in range(times):
        load.peer.exchange(window, WINDOW)
    seconds = time.perf_counter() - began
    cpu = cpu_seconds(load.process) - before
    return Measured(times * WINDOW / seconds, cpu / times / WINDOW * 1e6)


if __name__ == "__main__":
    main()
