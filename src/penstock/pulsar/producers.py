"""Who publishes to which partition: names are unique, and a producer may have it to itself."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from penstock.broker.producers.named import id_of_name
from penstock.metadata.errors import MetadataError
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.wire.pulsar_api_pb2 import ProducerAccessMode, ServerError
from penstock.requests.queue import Queue
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.broker import Broker
    from penstock.broker.producers.epochs import ExclusiveEpochs
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.session import Awaited


class ProducerOwner(Protocol):
    """The connection of a producer."""

    async def is_alive(self) -> bool:
        """Whether the client still answers; takes a few seconds when it does not."""

    def drop_producer(self, producer: Producer) -> None:
        """The producer is out: have the client create it again where it still wants to."""


@dataclass(eq=False)
class Producer:
    """One producer of one partition. `ready` is set once it may send."""

    id: int
    name: str
    partition: Partition
    owner: ProducerOwner
    mode: ProducerAccessMode.ValueType
    topic_epoch: int | None = None
    looks: Queue = field(default_factory=Queue)
    """Where a message waits for a look at what is in it, and those behind it for their turn."""
    schema_version: bytes = b""
    """What its client writes beside its messages; empty without a schema."""
    name_is_ours: bool = False
    """Whether the broker made the name, so that nobody comes back under it once it is closed."""
    last_sequence: int = -1
    """The number of the last message under this name when the producer came; -1 for none."""
    come_with: int = -1
    """The same, of one that came anew; -1 of one that goes on after its connection broke, and may
    have to send what has lower numbers and was not written yet.
    """
    last_sent: Awaited | None = None
    """What the receipt of the last message waits for. Where that failed, the producer has ended:
    its client connects anew and sends again, in order, all that it has no receipt for.
    """
    ready: asyncio.Future[None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def __post_init__(self) -> None:
        self.key = id_of_name(self.name)


class PartitionProducers:
    """The producers of one partition.

    The epoch counts the owners that had the partition to themselves (PIP-68), and is durable before
    its owner is ready.
    """

    def __init__(self, partition_id: int, epochs: ExclusiveEpochs) -> None:
        self._partition_id = partition_id
        self._epochs = epochs
        self._producers: dict[str, Producer] = {}
        self._owner: Producer | None = None
        # In their order, and each found at once.
        self._waiting: OrderedDict[Producer, None] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._producers or self._waiting)

    async def add(self, producer: Producer) -> None:
        """Let a producer in; one that waits for its turn is let in, but is not `ready`.

        Raises RefusedError and MetadataError.
        """
        await self._make_room(producer.name)
        self._check_epoch(producer)
        match producer.mode:
            case ProducerAccessMode.Shared:
                self._add_shared(producer)
            case ProducerAccessMode.Exclusive:
                self._add_exclusive(producer)
            case ProducerAccessMode.ExclusiveWithFencing:
                self.drop_all()
                self._own(producer)
            case _:
                self._add_waiting(producer)
        if self._owner is producer:
            await self._ready(producer)

    def remove(self, producer: Producer) -> None:
        """Forget a producer; the next one that waits has the partition then."""
        self._waiting.pop(producer, None)
        if self._producers.get(producer.name) is producer:
            del self._producers[producer.name]
        if self._owner is producer:
            self._owner = None
        if self._waiting and not self._producers:
            self._own(self._waiting.popitem(last=False)[0])

    def drop_all(self) -> None:
        """Send every producer away, and those that wait."""
        gone = [*self._waiting, *self._producers.values()]
        self._waiting.clear()
        self._producers.clear()
        self._owner = None
        for producer in gone:
            producer.owner.drop_producer(producer)

    async def _make_room(self, name: str) -> None:
        # The client that lost its connection comes back before the broker has seen it go.
        while (other := self._producers.get(name)) is not None:
            if await other.owner.is_alive():
                raise RefusedError(
                    ServerError.ProducerBusy, f"a producer named {name} is already connected"
                )
            if self._producers.get(name) is other:
                self.remove(other)
                other.owner.drop_producer(other)

    def _check_epoch(self, producer: Producer) -> None:
        epoch = self._epochs.get(self._partition_id)
        if producer.topic_epoch is None or epoch is None:
            return
        if producer.topic_epoch < epoch:
            raise RefusedError(ServerError.ProducerFenced, "another producer took over meanwhile")

    def _add_shared(self, producer: Producer) -> None:
        if self._owner is not None or self._waiting:
            raise RefusedError(
                ServerError.ProducerBusy, "a producer has the topic to itself, or waits for it"
            )
        self._producers[producer.name] = producer
        producer.ready.set_result(None)

    def _add_exclusive(self, producer: Producer) -> None:
        if self._producers or self._waiting:
            raise RefusedError(ServerError.ProducerFenced, "the topic has a producer already")
        self._own(producer)

    def _add_waiting(self, producer: Producer) -> None:
        if self._producers or self._waiting:
            self._waiting[producer] = None
        else:
            self._own(producer)

    def _own(self, producer: Producer) -> None:
        epoch = self._epochs.get(self._partition_id)
        if producer.topic_epoch is None:
            producer.topic_epoch = 0 if epoch is None else epoch + 1
        self._owner = producer
        self._producers[producer.name] = producer
        Tasks().start(self._begin_epoch(producer, producer.topic_epoch), "an exclusive epoch")

    async def _begin_epoch(self, producer: Producer, epoch: int) -> None:
        try:
            if epoch != self._epochs.get(self._partition_id):
                await self._epochs.begin(self._partition_id, epoch)
        except MetadataError as error:
            producer.ready.set_exception(error)
            producer.ready.exception()  # It may be that nobody waits for it any more.
            self.remove(producer)
            producer.owner.drop_producer(producer)
        else:
            producer.ready.set_result(None)

    async def _ready(self, producer: Producer) -> None:
        try:
            await asyncio.wait([producer.ready])
        except asyncio.CancelledError:
            self.remove(producer)
            raise
        producer.ready.result()
        if self._producers.get(producer.name) is not producer:
            raise RefusedError(ServerError.ProducerFenced, "another producer took over meanwhile")


class Producers:
    """The producers of one broker, by partition, whichever connection they are on."""

    def __init__(self, broker: Broker) -> None:
        self._by_partition: dict[int, PartitionProducers] = {}
        self._epochs = broker.exclusive_epochs
        self._numbers = itertools.count()
        # A name is never given twice, not even after a restart: clients keep theirs.
        self._prefix = f"penstock-{broker.cluster.this_node.node_id}-{secrets.token_hex(4)}"
        broker.topics.deletion.on_partitions(self._forget)
        broker.retention.backlogs.on_excess(self._drop)
        broker.topics.on_configured(self._configured)

    def new_name(self) -> str:
        """Return a name for a producer whose client leaves it to the broker."""
        return f"{self._prefix}-{next(self._numbers)}"

    def are_there(self, partition: Partition) -> bool:
        """Whether a partition has producers, or some that wait to be one."""
        return partition.id in self._by_partition

    async def add(self, producer: Producer) -> None:
        """Let a producer in; see PartitionProducers."""
        partition_id = producer.partition.id
        producers = self._by_partition.get(partition_id)
        if producers is None:
            producers = PartitionProducers(partition_id, self._epochs)
            self._by_partition[partition_id] = producers
        await producers.add(producer)

    def remove(self, producer: Producer) -> None:
        """Forget a producer that its client closed, or whose connection is gone."""
        producers = self._by_partition.get(producer.partition.id)
        if producers is not None:
            producers.remove(producer)
            if not producers:
                del self._by_partition[producer.partition.id]

    def _forget(self, _topic: Topic, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            self._drop(partition)
            self._by_partition.pop(partition.id, None)

    def _configured(self, topic: Topic) -> None:
        # They hear that the topic has ended as they come back, also those that send nothing. Of a
        # message that is refused the Go client would hear nothing: it waits until its time is up.
        if topic.config.terminated:
            for partition in topic.partitions:
                self._drop(partition)

    def _drop(self, partition: Partition) -> None:
        """Send the producers of a partition away; those that come back are judged anew."""
        if producers := self._by_partition.get(partition.id):
            producers.drop_all()
