"""What a produced gigabyte costs the broker's CPU: by record size, batch size and codec.

The client sends ready-made Produce requests over one socket, some at a time, so that what is
measured is the broker alone: receiving, the checks of batch and records, and writing.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import cramjam

import saved
from broker_cpu import broker_in, cpu_seconds
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.demo.processes import running_broker
from penstock.kafka.wire import api
from penstock.log.header import HEADER_SIZE, Magic, build_header, read_header
from request_cost import Peer, kafka_frame, length_prefixed

WINDOW = 4
TOPIC = "gigabytes"
ROUNDS = 5

CODECS: Final[dict[str, tuple[int, Callable[[bytes], bytes]]]] = {
    "none": (0, bytes),
    "gzip": (1, lambda body: zlib.compress(body, wbits=31)),
    "snappy": (2, lambda body: bytes(cramjam.snappy.compress_raw(body))),
    "lz4": (3, lambda body: bytes(cramjam.lz4.compress(body))),
    "zstd": (4, lambda body: bytes(cramjam.zstd.compress(body))),
}


class Load(NamedTuple):
    """One kind of batch."""

    record_bytes: int
    batch_bytes: int
    codec: str

    def __str__(self) -> str:
        return f"{self.record_bytes} B in {self.batch_bytes >> 10} KiB, {self.codec}"


LOADS: Final = [
    *(Load(size, batch << 10, "none") for batch in (1_000, 64, 16) for size in (100, 1_000)),
    *(
        Load(1_000, batch << 10, codec)
        for batch in (1_000, 16)
        for codec in CODECS
        if codec != "none"
    ),
]


def batch(load: Load) -> bytes:
    """A batch of so many bytes before compression, of text that compresses to about a third."""
    words = [random.Random(seed).randbytes(4).hex().encode() for seed in range(200)]
    chosen = random.Random(1)
    count = load.batch_bytes // (load.record_bytes + 10)
    values = [
        b" ".join(chosen.choices(words, k=load.record_bytes // 8))[: load.record_bytes]
        for _ in range(count)
    ]
    plain = encode_batch([Record(value, timestamp_ms=1_700_000_000_000) for value in values])
    codec, compress = CODECS[load.codec]
    header, body = read_header(plain), compress(bytes(plain[HEADER_SIZE:]))
    made = build_header(
        Magic.KAFKA,
        body,
        attributes=codec,
        record_count=count,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
    )
    return bytes(made) + body


class Bench:
    """One broker and one connection to it."""

    def __init__(self, folder: Path, address: str, megabytes: int) -> None:
        self._broker = broker_in(folder)
        self._peer = Peer(address, length_prefixed)
        self._bytes = megabytes * 1_000_000
        types = api("CreateTopics").request
        made = types.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        self._peer.exchange(kafka_frame("CreateTopics", 5, topics=[made], timeout_ms=1000), 1)

    def cost(self, load: Load, made: bytes) -> float:
        """Return the broker's CPU seconds a GB of records before compression."""
        types = api("Produce").request
        part = types.PartitionProduceData(index=0, records=made)
        data = types.TopicProduceData(name=TOPIC, partition_data=[part])
        frame = kafka_frame("Produce", 9, acks=1, timeout_ms=1000, topic_data=[data])
        turns = max(2, self._bytes // (WINDOW * load.batch_bytes))
        self._peer.exchange(frame * WINDOW, WINDOW)
        before = cpu_seconds(self._broker)
        for _ in range(turns):
            self._peer.exchange(frame * WINDOW, WINDOW)
        return (cpu_seconds(self._broker) - before) / (turns * WINDOW * load.batch_bytes / 1e9)


def measured(megabytes: int) -> Iterator[tuple[Load, float]]:
    """Yield the median of some rounds of each load, which take turns."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name:
        folder = Path(name)
        with running_broker(folder) as addresses:
            bench = Bench(folder, addresses["kafka"], megabytes)
            batches = [(load, batch(load)) for load in LOADS]
            costs = [[bench.cost(*each) for each in batches] for _ in range(ROUNDS)]
    for load, found in zip(LOADS, zip(*costs, strict=True), strict=True):
        yield load, statistics.median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200, help="of one load, a round")
    saved.add_flag(parser)
    arguments = parser.parse_args()
    found = dict(measured(arguments.megabytes))
    print("a batch                             broker CPU s/GB")
    for load, cost in found.items():
        print(f"{load!s:34}{cost:17.3f}")
    numbers = {f"{load}, CPU s/GB": cost for load, cost in found.items()}
    saved.compare("produce_cost", numbers, save=arguments.save)


if __name__ == "__main__":
    main()
