"""What all Pulsar connections of one node share."""

from __future__ import annotations

import itertools
import secrets
from typing import TYPE_CHECKING, Self
from weakref import WeakKeyDictionary

from penstock.pulsar.producers import PartitionProducers

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.pulsar.producers import Producer


class Node:
    """The Pulsar side of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._producers: dict[int, PartitionProducers] = {}
        self._numbers = itertools.count()
        # A name is never given twice, not even after a restart: clients keep theirs.
        self._prefix = f"penstock-{broker.cluster.this_node.node_id}-{secrets.token_hex(4)}"
        broker.topics.on_delete(self._forget)

    @classmethod
    def of(cls, broker: Broker) -> Self:
        """Return the one node of this broker."""
        node = _nodes.get(broker)
        if node is None:
            node = _nodes[broker] = cls(broker)
        assert isinstance(node, cls)
        return node

    def new_producer_name(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"

    def producers_of(self, partition: Partition) -> PartitionProducers:
        return self._producers.setdefault(partition.id, PartitionProducers())

    def remove_producer(self, producer: Producer) -> None:
        """Forget a producer that its client closed, or whose connection is gone."""
        producers = self._producers.get(producer.partition.id)
        if producers is not None:
            producers.remove(producer)
            if not producers:
                del self._producers[producer.partition.id]

    def _forget(self, topic: Topic) -> None:
        for partition in topic.partitions:
            producers = self._producers.pop(partition.id, None)
            if producers is not None:
                producers.drop_all()


_nodes: WeakKeyDictionary[Broker, Node] = WeakKeyDictionary()
