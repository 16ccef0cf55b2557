"""What the creation of a topic costs the broker, with few topics and with many: its CPU time, in
milliseconds, and how many a second one connection gets.

Topics are created one by one by a client of each protocol, a hundred in a request, and by their
first use. The bar is 2 ms of CPU, however many topics there are.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import saved
from broker_cpu import broker_in, cpu_seconds
from penstock.demo.processes import running_broker
from penstock.iggy.wire import requests as iggy
from penstock.iggy.wire.commands import Command, Operation
from penstock.iggy.wire.identifiers import Identifier
from penstock.kafka.wire import api
from penstock.pulsar.wire import pulsar_api_pb2 as pb
from request_cost import (
    Peer,
    encode,
    iggy_request,
    iggy_sized,
    kafka_frame,
    length_prefixed,
)

TOGETHER = 100
ADDRESSES = {"kafka": "127.0.0.2", "pulsar": "127.0.0.3", "iggy": "127.0.0.4"}
"""One address alone may not create as many as this does."""


class Load(NamedTuple):
    """One way to create topics."""

    peer: Peer
    request: Callable[[list[str]], bytes]
    together: int = 1


def kafka_loads(address: str) -> Iterator[tuple[str, Load]]:
    peer = Peer(address, length_prefixed, ADDRESSES["kafka"])
    types = api("CreateTopics").request
    asked = api("Metadata").request.MetadataRequestTopic

    def create(names: list[str]) -> bytes:
        topics = [
            types.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            for name in names
        ]
        return kafka_frame("CreateTopics", 5, topics=topics, timeout_ms=60_000)

    def first_use(names: list[str]) -> bytes:
        topics = [asked(name=name) for name in names]
        return kafka_frame("Metadata", 9, topics=topics, allow_auto_topic_creation=True)

    yield "kafka CreateTopics", Load(peer, create)
    yield f"kafka CreateTopics of {TOGETHER}", Load(peer, create, TOGETHER)
    yield "kafka Metadata", Load(peer, first_use)
    yield f"kafka Metadata of {TOGETHER}", Load(peer, first_use, TOGETHER)


def pulsar_loads(address: str) -> Iterator[tuple[str, Load]]:
    peer = Peer(address, length_prefixed, ADDRESSES["pulsar"])
    connect = pb.CommandConnect(client_version="load", protocol_version=21)
    peer.exchange(encode(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect)), 1)
    numbers = count(1)

    def produce(names: list[str]) -> bytes:
        number = next(numbers)
        producer = pb.CommandProducer(topic=names[0], producer_id=number, request_id=number)
        return encode(pb.BaseCommand(type=pb.BaseCommand.PRODUCER, producer=producer))

    yield "pulsar PRODUCER", Load(peer, produce)


def iggy_loads(address: str) -> Iterator[tuple[str, Load]]:
    peer = Peer(address, iggy_sized, ADDRESSES["iggy"])
    login = iggy.LoginRegister(0x2C00, "load", "1", "iggy", "iggy", "")
    peer.exchange(iggy_request(Command.LOGIN_REGISTER, login.encode(), Operation.REGISTER), 1)

    def create(names: list[str]) -> bytes:
        topic = iggy.CreateTopic(Identifier("default"), 1, names[0], {})
        return iggy_request(Command.CREATE_TOPIC, topic.encode())

    yield "iggy CREATE_TOPIC", Load(peer, create)


def create(load: Load, numbers: Iterator[int], topics: int) -> int:
    """Create about so many topics; return how many."""
    requests = -(-topics // load.together)
    for _ in range(requests):
        names = [f"topic-{next(numbers)}" for _ in range(load.together)]
        load.peer.exchange(load.request(names), 1)
    return requests * load.together


def measure(folder: Path, sizes: list[int], topics: int) -> dict[str, float]:
    """Print what each load costs at each size; return the milliseconds of CPU a topic."""
    measured = {}
    with running_broker(folder) as addresses:
        broker = broker_in(folder)
        made, numbers = folder / "data" / "topics", count()
        for size in sizes:
            kafka = dict(kafka_loads(addresses["kafka"]))
            if (missing := size - next(numbers) - 1) > 0:
                create(kafka[f"kafka CreateTopics of {TOGETHER}"], numbers, missing)
            # Not before: those that say nothing for long are closed.
            pulsar = pulsar_loads(addresses["pulsar"])
            loads = kafka | dict(pulsar) | dict(iggy_loads(addresses["iggy"]))
            for name, load in loads.items():
                before, began = cpu_seconds(broker), time.perf_counter()
                created = create(load, numbers, topics)
                seconds = time.perf_counter() - began
                cost = (cpu_seconds(broker) - before) / created * 1000
                print(f"{name:28}{size:8}{cost:10.2f} ms{created / seconds:10.0f}/s", flush=True)
                measured[f"{name}, at {size}"] = cost
        expected = next(numbers) - len(sizes)
        assert len([*made.iterdir()]) == expected, "what was refused costs nothing"
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 10_000])
    parser.add_argument("--topics", type=int, default=300, help="of each kind, at each size")
    saved.add_flag(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-creation-") as folder:
        measured = measure(Path(folder), arguments.sizes, arguments.topics)
    saved.compare("topic-creation", measured, save=arguments.save)


if __name__ == "__main__":
    main()
