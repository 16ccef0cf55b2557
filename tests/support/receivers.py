"""Consumers of a subscription without any protocol, and what they consume."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from penstock.broker.broker import Broker
from penstock.broker.subscriptions.consumer import Consumer, Delivery
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.log.header import Magic, build_header
from penstock.records.pulsar.entry import read_entry
from stored_batches import singles


def message_batch(count: int = 1, body: bytes = b"body") -> list[bytearray | bytes]:
    """A batch of a Pulsar entry as far as the broker's own layers look at it."""
    header = build_header(
        Magic.PULSAR, body, record_count=count, base_timestamp=1000, max_timestamp=1000
    )
    return [header, body]


async def stocked(broker: Broker, batches: int, messages: int, partitions: int = 1) -> Partition:
    """Create the topic `t`, and return its first partition with so many batches of messages."""
    topic = await broker.topics.create(TopicName("public", "default", "t"), partitions)
    partition = topic.partition(0)
    await partition.opened()
    for _ in range(batches):
        partition.append(message_batch(messages))
    await partition.flushed()
    return partition


_receivers: dict[Consumer, FakeReceiver] = {}


class FakeReceiver:
    """Keeps what it is given. `open_gate` and `close_gate` make its connection slow."""

    def __init__(self, *, alive: bool = True, takes_files: bool = False) -> None:
        self.alive = alive
        self.takes_files = takes_files
        self.deliveries: list[Delivery] = []
        self.activations: list[bool] = []
        self.ends = 0
        self.disconnected = 0
        self._gate = asyncio.Event()
        self._gate.set()

    @property
    def offsets(self) -> list[int]:
        return [delivery.entry.header.base_offset for delivery in self.deliveries]

    def close_gate(self) -> None:
        self._gate.clear()

    def open_gate(self) -> None:
        self._gate.set()

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        self.deliveries += deliveries

    async def writable(self) -> None:
        await self._gate.wait()

    def activated(self, active: bool) -> None:
        self.activations.append(active)

    def reached_end(self) -> None:
        self.ends += 1

    def disconnect(self) -> None:
        self.disconnected += 1

    async def is_alive(self) -> bool:
        return self.alive


def consumer(
    name: str = "consumer",
    priority: int = 0,
    *,
    reads_compacted: bool = False,
    **options: bool,
) -> Consumer:
    receiver = FakeReceiver(**options)
    made = Consumer(receiver, name, priority, reads_compacted=reads_compacted)
    _receivers[made] = receiver
    return made


def receiver_of(member: Consumer) -> FakeReceiver:
    """Return it of a consumer that has left, too."""
    return _receivers[member]


def shown(member: Consumer) -> dict[int, bytes]:
    """Return the payloads that a Pulsar client shows of its batches, by offset."""
    found = {}
    for delivery in receiver_of(member).deliveries:
        parsed = read_entry(delivery.entry.body)
        base = delivery.entry.header.base_offset
        for index, (_, payload) in enumerate(singles(bytes(parsed.payload))):
            if delivery.open_mask is None or delivery.open_mask >> index & 1:
                found[base + index] = payload
    return found


async def settled() -> None:
    """Let every task run until nothing is left to do at once."""
    for _ in range(50):
        await asyncio.sleep(0)
