"""What the broker says of its readers: groups of Kafka and Iggy, subscriptions of Pulsar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from penstock.kafka.wire.messages import ListReadersResponse


class Progress(NamedTuple):
    """How far a reader is in one partition.

    `position` is the first offset that is not done, `backlog` how many messages are not done from
    there on. What is None is not known: the partition's log can't be opened.
    """

    topic: str
    partition: int
    position: int
    end_offset: int | None
    backlog: int | None


class Reader(NamedTuple):
    """A group or a subscription; those of Pulsar and Iggy are of one topic each."""

    protocol: str
    name: str
    type: str
    state: str
    members: int
    topics: Sequence[str]
    progress: Sequence[Progress]

    @property
    def backlog(self) -> int | None:
        """Messages that are not done; None where that is not known, or there is no place yet."""
        amounts = [each.backlog for each in self.progress]
        known = [amount for amount in amounts if amount is not None]
        return sum(known) if known and len(known) == len(amounts) else None


def described(reader: ListReadersResponse.Reader) -> Reader:
    progress = [
        Progress(
            topic.name,
            each.partition_index,
            each.position,
            each.end_offset if each.end_offset >= 0 else None,
            each.backlog if each.backlog >= 0 else None,
        )
        for topic in reader.topics
        for each in topic.partitions
    ]
    about = (reader.reader_type, reader.reader_state, reader.members)
    topics = sorted(topic.name for topic in reader.topics)
    return Reader(reader.protocol, reader.name, *about, topics, progress)


def of_group(
    name: str,
    group_type: str,
    state: str,
    assigned: Sequence[Mapping[str, Sequence[int]]],
    offsets: Mapping[tuple[str, int], tuple[int, int | None]],
) -> Reader:
    """Return a Kafka group as a reader, from what Kafka itself says of it.

    `assigned` has the partitions of each member by topic, `offsets` by topic and partition what
    was committed and where the partition ends.
    """
    progress = [
        Progress(*place, committed, end, None if end is None else max(0, end - committed))
        for place, (committed, end) in sorted(offsets.items())
    ]
    topics = {topic for topic, _ in offsets}.union(*assigned)
    return Reader("kafka", name, group_type, state, len(assigned), sorted(topics), progress)
