"""What a gigabyte costs the broker in CPU in each of Iggy's dialects: sent, polled a first time
("on") and polled again, as by the second one of several consumers.

Ready-made frames of 1,000 messages of 1 KB go over a socket; the three dialects take turns, so that
a machine that others use tells them apart all the same. The bar is 1.3 times today's.
"""

from __future__ import annotations

import argparse
import statistics
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import xxhash

import saved
from broker_cpu import broker_in, cpu_seconds
from penstock.demo.processes import running_broker
from penstock.iggy.wire import requests as iggy
from penstock.iggy.wire.commands import Command, Operation
from penstock.iggy.wire.identifiers import (
    Consumer,
    ConsumerKind,
    Identifier,
    Partitioning,
    PollingKind,
    PollingStrategy,
)
from request_cost import Peer, iggy_request, iggy_sized

COUNT = 1000
VALUE = bytes(range(256)) * 4
STREAM = Identifier("default")
BAR = 1.3
UNIT = ", CPU s/GB"


class Dialect(NamedTuple):
    """A connection, and one request of each kind."""

    peer: Peer
    send: bytes
    poll: Callable[[int], bytes]
    """From an offset on."""


def accepted(data: bytes | bytearray, status_at: int) -> None:
    """Stop where an answer is a refusal: that one costs little."""
    status = int.from_bytes(data[status_at : status_at + 4], "little")
    if status:
        raise RuntimeError(f"a request was refused with {status}")


def today_sized(data: bytes | bytearray, at: int) -> int | None:
    accepted(data, at + 216)
    return iggy_sized(data, at)


def older_sized(data: bytes | bytearray, at: int) -> int | None:
    """The older dialects' replies hold the size of what follows."""
    accepted(data, at)
    return 8 + int.from_bytes(data[at + 4 : at + 8], "little") if len(data) >= at + 8 else None


def older_request(code: int, body: bytes) -> bytes:
    return struct.pack("<II", 4 + len(body), code) + body


def today(address: str, topic: str) -> Dialect:
    peer = Peer(address, today_sized)
    login = iggy.LoginRegister(0x2C00, "load", "1", "iggy", "iggy", "")
    peer.exchange(iggy_request(Command.LOGIN_REGISTER, login.encode(), Operation.REGISTER), 1)
    stream = iggy.CreateStream(str(STREAM.value), {})
    peer.exchange(iggy_request(Command.CREATE_STREAM, stream.encode()), 1)
    create = iggy.CreateTopic(STREAM, 1, topic, {})
    peer.exchange(iggy_request(Command.CREATE_TOPIC, create.encode()), 1)
    frames = []
    for index in range(COUNT):
        rest = struct.pack("<16sIIIIQ", b"\1" * 16, index, 0, 0, len(VALUE), 0) + VALUE
        frames.append(struct.pack("<Q", xxhash.xxh3_64_intdigest(rest)) + rest)
    facts = (0, 0, 0, 1_700_000_000_000_000, 256 + sum(map(len, frames)))
    checksums = b"".join(frame[:8] for frame in frames)
    summed = struct.pack("<QQQQQI", *facts, COUNT) + checksums
    header = struct.pack("<QQQQQQI204x", *facts, xxhash.xxh3_64_intdigest(summed), COUNT)
    place = (STREAM, Identifier(topic))
    batch = memoryview(header + b"".join(frames))
    send = iggy.SendMessages(0, *place, Partitioning.partition(0), COUNT, batch)
    reader = Consumer(ConsumerKind.CONSUMER, Identifier(1))

    def poll(offset: int) -> bytes:
        strategy = PollingStrategy(PollingKind.OFFSET, offset)
        asked = iggy.PollMessages(reader, *place, 0, strategy, COUNT, False)
        return iggy_request(Command.POLL_MESSAGES, asked.encode())

    return Dialect(peer, iggy_request(Command.SEND_MESSAGES, send.encode()), poll)


def of_0_8(address: str, topic: str) -> Dialect:
    peer = Peer(address, older_sized)
    peer.exchange(older_request(38, b"\4iggy\4iggy" + struct.pack("<I", 0) * 2), 1)
    stream, place = b"\2\7default", b"\2" + bytes([len(topic)]) + topic.encode()
    create = struct.pack("<IBQQB", 1, 1, 0, 0, 0) + place[1:]
    peer.exchange(older_request(302, stream + create), 1)
    message = struct.pack("<8x16s8x8xQII8x", b"\1" * 16, 1_700_000_000_000_000, 0, len(VALUE))
    message += VALUE
    index = b"".join(struct.pack("<II8x", 0, len(message) * (n + 1)) for n in range(COUNT))
    metadata = stream + place + b"\2\4" + bytes(4) + struct.pack("<I", COUNT)
    send = struct.pack("<I", len(metadata)) + metadata + index + message * COUNT

    def poll(offset: int) -> bytes:
        what = struct.pack("<BIBQIB", 1, 0, 1, offset, COUNT, 0)
        return older_request(100, b"\1\1\4\1\0\0\0" + stream + place + what)

    return Dialect(peer, older_request(101, send), poll)


def of_2023(address: str, topic: str) -> Dialect:
    peer = Peer(address, older_sized)
    stream, place = b"\2\7default", b"\2" + bytes([len(topic)]) + topic.encode()
    peer.exchange(older_request(302, stream + struct.pack("<III", 77, 1, 0) + place[1:]), 1)
    message = b"\1" * 16 + struct.pack("<II", 0, len(VALUE)) + VALUE
    send = stream + place + b"\2\4" + struct.pack("<I", 1) + message * COUNT

    def poll(offset: int) -> bytes:
        what = struct.pack("<IBQIB", 1, 1, offset, COUNT, 0)
        return older_request(100, struct.pack("<BI", 1, 1) + stream + place + what)

    return Dialect(peer, older_request(101, send), poll)


DIALECTS: dict[str, Callable[[str, str], Dialect]] = {
    "today": today,
    "0.8": of_0_8,
    "2023": of_2023,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=250, help="of each kind a round")
    saved.add_flag(parser)
    arguments = parser.parse_args()
    costs: dict[str, list[float]] = {}
    gigabytes = arguments.requests * COUNT * len(VALUE) / 1e9
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as made:
        folder = Path(made)
        with running_broker(folder) as addresses:
            broker = broker_in(folder)
            dialects = {
                name: make(addresses["iggy"], f"load-{number}")
                for number, (name, make) in enumerate(DIALECTS.items())
            }
            for dialect in dialects.values():
                dialect.peer.exchange(dialect.send, 1)
                dialect.peer.exchange(dialect.poll(0), 1)
            for _ in range(arguments.rounds):
                for name, dialect in dialects.items():
                    polls = [dialect.poll(COUNT * each) for each in range(arguments.requests)]
                    for what, requests in (
                        ("send", [dialect.send] * arguments.requests),
                        ("poll again", polls[:1] * arguments.requests),
                        ("poll on", polls),
                    ):
                        began = cpu_seconds(broker)
                        for request in requests:
                            dialect.peer.exchange(request, 1)
                        time.sleep(0.05)
                        cost = (cpu_seconds(broker) - began) / gigabytes
                        costs.setdefault(f"{what} {name}{UNIT}", []).append(cost)
    numbers = {name: statistics.median(of_round) for name, of_round in costs.items()}
    for name, number in numbers.items():
        dialect = name.removesuffix(UNIT).rpartition(" ")[2]
        ratio = number / numbers[name.replace(dialect, "today")]
        print(f"{name:30}{number:10.3f}{ratio:8.2f} x today's, bar {BAR}")
    saved.compare("iggy-dialects", numbers, save=arguments.save)


if __name__ == "__main__":
    main()
