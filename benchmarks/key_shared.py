"""What Key_Shared costs beside Shared: four consumers, keys in no order, nobody reads a socket.

Prints the broker's CPU an entry, handed out and acknowledged, of each in the same run.
Usage: python benchmarks/key_shared.py [ENTRIES] [--save]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import tempfile
import time
from pathlib import Path

import uvloop

import saved
from delayed import PAYLOAD, WRITTEN_TOGETHER, Taker
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.subscriptions.consumer import Consumer
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import SubscriptionKind
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.log.header import Magic, build_header
from penstock.records.pulsar.entry import build_entry
from penstock.records.pulsar.metadata_pb2 import MessageMetadata

CONSUMERS = 4
KEYS = 5_000
PERMITS = 1_000
ROUNDS = 3


async def filled(broker: Broker, count: int) -> Partition:
    topic = await broker.topics.create(TopicName("public", "default", "keys"), 1)
    partition = topic.partition(0)
    await partition.opened()
    chance = random.Random(1)
    for number in range(count):
        key = f"key-{chance.randrange(KEYS)}"
        about = MessageMetadata(
            producer_name="p", sequence_id=number, publish_time=1, partition_key=key
        )
        body = build_entry(about, PAYLOAD)
        header = build_header(Magic.PULSAR, body, record_count=1, base_timestamp=1, max_timestamp=1)
        partition.append([header, body])
        if number % WRITTEN_TOGETHER == 0:
            await partition.flushed()
    await partition.flushed()
    return partition


async def cost(broker: Broker, partition: Partition, name: str, kind: SubscriptionKind) -> float:
    """Return microseconds of CPU an entry."""
    takers = [Taker() for _ in range(CONSUMERS)]
    members = [Consumer(taker, f"c{number}") for number, taker in enumerate(takers)]
    request = SubscribeRequest(name=name, kind=kind, position=0)
    for taker, member in zip(takers, members, strict=True):
        taker.subscription = await broker.subscriptions.subscribe(partition, request, member)
    subscription = broker.subscriptions.get(partition, name)
    assert subscription is not None
    began = time.process_time()
    while subscription.backlog:
        for member in members:
            if member.permits < PERMITS // 2:
                subscription.add_permits(member, PERMITS - member.permits)
        await asyncio.sleep(0)
    spent = time.process_time() - began
    for member in members:
        broker.subscriptions.leave(subscription, member)
    return spent * 1e6 / partition.end_offset


async def measured(count: int, folder: Path) -> dict[str, float]:
    broker = await Broker.open(folder, BrokerSettings())
    partition = await filled(broker, count)
    numbers: dict[str, float] = {}
    for number in range(ROUNDS):
        for kind in (SubscriptionKind.SHARED, SubscriptionKind.KEY_SHARED):
            spent = await cost(broker, partition, f"{kind.name}-{number}", kind)
            name = f"{kind.name.lower()} us"
            numbers[name] = min(numbers.get(name, spent), spent)
    await broker.close()
    return numbers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("entries", type=int, nargs="?", default=40_000)
    saved.add_flag(parser)
    options = parser.parse_args()
    gc.disable()  # As a broker, which collects when it is for others to wait.
    with tempfile.TemporaryDirectory() as folder:
        numbers = uvloop.run(measured(options.entries, Path(folder)))
    numbers["key_shared / shared"] = numbers["key_shared us"] / numbers["shared us"]
    for name, number in numbers.items():
        print(f"{name:>28}: {number:8.2f}")
    saved.compare("key_shared", numbers, save=options.save)


if __name__ == "__main__":
    main()
