"""Whose offset is meant, and how Iggy's word for it differs from the broker's.

Iggy stores the offset of the last message that a consumer is done with; the broker keeps the next
one to read, as Kafka does, so that a lag is computed the same way for all.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from penstock.broker.errors import UnknownPartitionError
from penstock.broker.groups.offsets import CommittedOffset, OffsetOwner
from penstock.iggy.wire.identifiers import ConsumerKind
from penstock.limits import IGGY_KNOWN_PLACES
from penstock.xxh32 import xxh32

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.iggy.wire.identifiers import Consumer

CONSUMER: Final = "iggy-consumer"
GROUP: Final = "iggy-group"
OFFSET_KINDS: Final = (CONSUMER, GROUP)


def owner_of(broker: Broker, topic: Topic, consumer: Consumer) -> OffsetOwner:
    """Return who the consumer is to the broker. Raises UnknownGroupError."""
    if consumer.kind is ConsumerKind.GROUP:
        return group_owner(broker.topic_groups.get(topic, consumer.id.value).name)
    return _consumer_owner(consumer.id.value)


@lru_cache(IGGY_KNOWN_PLACES)
def _consumer_owner(name: int | str) -> OffsetOwner:
    # A consumer's name stands for the number that it hashes to: both find the same offset.
    return OffsetOwner(CONSUMER, str(xxh32(name.encode()) if isinstance(name, str) else name))


def group_owner(name: str) -> OffsetOwner:
    """Return the owner of a group's offsets."""
    return OffsetOwner(GROUP, name)


def stored_offset(broker: Broker, owner: OffsetOwner, partition: Partition) -> int | None:
    """Return the offset of the last message that was stored as done."""
    committed = broker.offsets.get(owner, partition.id)
    return None if committed is None else committed.offset - 1


async def store_offset(
    broker: Broker, owner: OffsetOwner, partition: Partition, offset: int
) -> None:
    """Store the offset of the last message that is done.

    Raises UnknownPartitionError, TooManyOffsetsError and MetadataError.
    """
    committed = CommittedOffset(offset + 1, committed_at_ms=broker.offsets.next_time_ms())
    if await broker.offsets.commit(owner, {partition.id: committed}):
        raise UnknownPartitionError(f"the topic of {partition.name} was deleted")


def current_offset(partition: Partition) -> int:
    """Return the offset of the last message, 0 where there is none."""
    return max(0, partition.readable_end() - 1)
