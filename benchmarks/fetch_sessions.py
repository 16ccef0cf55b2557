"""What a fetch of many partitions costs the broker, with a fetch session and without (KIP-227).

A consumer of 1,000 partitions, of which one has a new batch each time: it names all of them, or in
its session the one whose offset moved.
"""

from __future__ import annotations

import argparse
import socket
import tempfile
from pathlib import Path

import saved
from broker_cpu import broker_in, cpu_seconds
from penstock.demo.processes import running_broker
from penstock.kafka.wire import api, decode_response
from request_cost import kafka_batch, kafka_frame

TOPIC = "sessions"
VERSION = 12
TYPES = api("Fetch").request
LOADS = (("warm up", False), ("without a session", False), ("in a session", True))


class Connection:
    """Asks one thing after the other."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def ask(self, frame: bytes) -> bytes:
        self._socket.sendall(frame)
        head = self._file.read(4)
        return head + self._file.read(int.from_bytes(head, "big"))


def fetch(offsets: dict[int, int], session_id: int, epoch: int) -> bytes:
    partitions = [
        TYPES.FetchPartition(partition=each, fetch_offset=offset, partition_max_bytes=1 << 20)
        for each, offset in offsets.items()
    ]
    topics = [TYPES.FetchTopic(topic=TOPIC, partitions=partitions)] if partitions else []
    fields = {"max_wait_ms": 1000, "min_bytes": 1, "max_bytes": 1 << 20, "topics": topics}
    return kafka_frame("Fetch", VERSION, session_id=session_id, session_epoch=epoch, **fields)


def produce(partition: int) -> bytes:
    types = api("Produce").request
    part = types.PartitionProduceData(index=partition, records=kafka_batch())
    data = types.TopicProduceData(name=TOPIC, partition_data=[part])
    return kafka_frame("Produce", 9, acks=-1, timeout_ms=1000, topic_data=[data])


def consume(
    broker: int, address: str, offsets: dict[int, int], rounds: int, *, session: bool
) -> float:
    """Return the broker's CPU microseconds a fetch, its producer's share with it."""
    producer, consumer = Connection(address), Connection(address)
    first = consumer.ask(fetch(offsets, 0, 0 if session else -1))
    session_id = decode_response(api("Fetch"), VERSION, memoryview(bytearray(first)))[1].session_id
    moved: dict[int, int] = {}
    before = cpu_seconds(broker)
    for number in range(rounds):
        partition = number % len(offsets)
        producer.ask(produce(partition))
        if session:
            consumer.ask(fetch(moved, session_id, number + 1))
        else:
            consumer.ask(fetch(offsets, 0, -1))
        offsets[partition] += 1
        moved = {partition: offsets[partition]}
    return (cpu_seconds(broker) - before) / rounds * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=500)
    saved.add_flag(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name:
        folder = Path(name)
        with running_broker(folder) as addresses:
            broker = broker_in(folder)
            types = api("CreateTopics").request
            made = types.CreatableTopic(
                name=TOPIC, num_partitions=arguments.partitions, replication_factor=1
            )
            Connection(addresses["kafka"]).ask(
                kafka_frame("CreateTopics", 5, topics=[made], timeout_ms=60_000)
            )
            offsets = dict.fromkeys(range(arguments.partitions), 0)
            numbers = {
                title: consume(
                    broker, addresses["kafka"], offsets, arguments.rounds, session=session
                )
                for title, session in LOADS
            }
    del numbers["warm up"]
    print(f"{arguments.partitions} partitions, a batch and its fetch    broker CPU us")
    for title, number in numbers.items():
        print(f"{title:40}{number:12.0f}")
    saved.compare("fetch-sessions", numbers, save=arguments.save)


if __name__ == "__main__":
    main()
