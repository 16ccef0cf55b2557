"""Positions in topics: what Spark checkpoints for a stream, and what a task reads.

The JSON form is that of Spark's Kafka source, `{"topic": {"0": 17}}`, so that a checkpoint and the
options startingOffsets and endingOffsets read the same. A checkpoint says besides which topic of
that name the offsets are of, `{"topic": {"0": 17, "id": "…"}}`: one made anew has another id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

EARLIEST: Final = -2
LATEST: Final = -1
"""Kafka's own numbers for the two ends of a log (ListOffsets)."""


class TopicPartition(NamedTuple):
    """One partition of one topic, by its Kafka name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


Offsets: TypeAlias = dict[TopicPartition, int]
OffsetsJson: TypeAlias = dict[str, dict[str, int | str]]

TopicIds: TypeAlias = dict[str, str]
"""The id of each topic by its name; what older versions stored names none."""

_ID: Final = "id"
"""Beside a topic's partitions, whose keys are digits."""


class OffsetRange(NamedTuple):
    """Offsets [start, end) of one partition."""

    source: TopicPartition
    start: int
    end: int

    @property
    def rows(self) -> int:
        return self.end - self.start


def to_json(offsets: Offsets, ids: Mapping[str, str] | None = None) -> OffsetsJson:
    """Return the form that Spark stores, with those of the ids whose topics have an offset."""
    result: OffsetsJson = {}
    for (topic, partition), offset in sorted(offsets.items()):
        result.setdefault(topic, {})[str(partition)] = offset
    for topic, partitions in result.items():
        if ids and topic in ids:
            partitions[_ID] = ids[topic]
    return result


def topic_ids(stored: Mapping[str, Mapping[str, int | str]]) -> TopicIds:
    """Return the ids that `to_json` was given."""
    return {topic: str(each[_ID]) for topic, each in stored.items() if _ID in each}


def from_json(stored: Mapping[str, Mapping[str, int | str]]) -> Offsets:
    """Return the offsets `to_json` was given; raises ValueError where it is of another form."""
    offsets: Offsets = {}
    if not isinstance(stored, Mapping):
        raise ValueError(f"{stored!r} names no topic")  # noqa: TRY004  # see below
    for topic, partitions in stored.items():
        form = f'{topic!r} must hold an object such as {{"0": 17}}, not {partitions!r}'
        if not isinstance(partitions, Mapping):
            raise ValueError(form)  # noqa: TRY004  # to the caller it is one thing: text of a wrong form
        for partition, offset in partitions.items():
            if partition == _ID and isinstance(offset, str):
                continue
            if not partition.isdigit() or type(offset) is not int:
                raise ValueError(form)
            offsets[TopicPartition(topic, int(partition))] = offset
    return offsets


def limit_rows(start: Offsets, latest: Offsets, max_rows: int) -> Offsets:
    """Return the end of a batch of about `max_rows`, each partition in proportion to what waits.

    Every partition that has rows waiting gets at least one, so none starves.
    """
    waiting = {key: end - start.get(key, end) for key, end in latest.items()}
    total = sum(rows for rows in waiting.values() if rows > 0)
    if total <= max_rows:
        return latest
    return {
        key: end if waiting[key] <= 0 else start[key] + max(1, waiting[key] * max_rows // total)
        for key, end in latest.items()
    }
