"""One topic: its name, its settings and its partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.errors import UnknownPartitionError

if TYPE_CHECKING:
    import uuid

    from penstock.broker.topics.config import TopicConfig
    from penstock.broker.topics.names import TopicName
    from penstock.broker.topics.partition import Partition


class Topic:
    """A name and its partitions, of which there may be none yet."""

    def __init__(
        self,
        topic_id: uuid.UUID,
        name: TopicName,
        *,
        iggy_topic_id: int,
        partitioned: bool,
        config: TopicConfig,
        created_at_us: int,
    ) -> None:
        self.id = topic_id
        self.name = name
        self.iggy_topic_id = iggy_topic_id
        self._partitioned = partitioned
        self.created_at_us = created_at_us
        self.config = config
        self.partitions: list[Partition] = []
        self.deleted = False

    @property
    def partitioned(self) -> bool:
        """False for a Pulsar topic without partitions, until it is given more than its one."""
        return self._partitioned or len(self.partitions) > 1

    def mark_deleted(self, *, deleted: bool = True) -> None:
        """Refuse, or no longer refuse, what is asked of the topic and its partitions."""
        self.deleted = deleted
        for partition in self.partitions:
            partition.deleted = deleted

    def partition(self, index: int) -> Partition:
        """Return the partition of this number, from 0. Raises UnknownPartitionError."""
        if not 0 <= index < len(self.partitions):
            raise UnknownPartitionError(
                f"topic {self.name.kafka} has no partition {index}, only {len(self.partitions)}"
            )
        return self.partitions[index]
