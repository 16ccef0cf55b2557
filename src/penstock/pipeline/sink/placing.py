"""Which partition of which topic each row goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.hashing import HASHES

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.pipeline.sink.rows import Fields
    from penstock.pipeline.sink.topics import Topic
    from penstock.records.columns import Mask, Numbers


class Topics(Protocol):
    """The topics of a broker."""

    def find(self, name: str) -> Topic:
        """Return a topic, which the broker may make. Raises SinkError where there is none."""


class Placed(NamedTuple):
    """For each row the index of its topic in `topics`, and its partition."""

    topics: list[Topic]
    topic_of: Numbers
    partitions: Numbers


class Placing:
    """One task's rows: by partition column, else by key, else all of a batch to one partition."""

    def __init__(self, topics: Topics, topic: str | None, partitioner: str, task: int) -> None:
        self._topics = topics
        self._topic = topic
        self._hash = HASHES[partitioner]
        self._partitioner = partitioner
        self._turn = task
        """So that tasks of few rows do not all write to the first partition."""

    def place(self, batch: pa.RecordBatch, keys: Fields, first_row: int) -> Placed:
        """Return where the rows of a batch go. Raises SinkError, which names the first bad row."""
        topics, topic_of = self._topics_of(batch, first_row)
        counts = np.array([each.partitions for each in topics], np.int64)[topic_of]
        partitions = np.full(batch.num_rows, self._turn, np.int64) % counts
        self._turn += 1
        has_key = keys.sizes >= 0
        if has_key.any():
            hashed = self._hashed(keys, has_key, first_row)
            partitions[has_key] = hashed % counts[has_key]
        self._set_named(batch, partitions, counts, first_row)
        return Placed(topics, topic_of, partitions)

    def _topics_of(self, batch: pa.RecordBatch, first_row: int) -> tuple[list[Topic], Numbers]:
        if self._topic is not None:
            return [self._topics.find(self._topic)], np.zeros(batch.num_rows, np.int64)
        column = batch.column("topic")
        if column.null_count:
            row = first_row + _first(column.is_null())
            raise SinkError(f"row {row}: column topic is null; fill it, or set the option topic")
        found = column.dictionary_encode()
        topics = [self._topics.find(name) for name in found.dictionary.to_pylist()]
        return topics, found.indices.to_numpy().astype(np.int64)

    def _hashed(self, keys: Fields, has_key: Mask, first_row: int) -> Numbers:
        try:
            return self._hash(keys.data, keys.starts[has_key], keys.sizes[has_key])
        except UnicodeDecodeError:
            raise SinkError(
                f"rows from {first_row} on: partitioner {self._partitioner} hashes keys of text, "
                "and there is one that is not UTF-8; choose another partitioner, or give the rows "
                "a column partition"
            ) from None

    @staticmethod
    def _set_named(
        batch: pa.RecordBatch, partitions: Numbers, counts: Numbers, first_row: int
    ) -> None:
        index = batch.schema.get_field_index("partition")
        if index < 0:
            return
        column = batch.column(index)
        is_named = column.is_valid().to_numpy(zero_copy_only=False)
        named = column.fill_null(0).to_numpy().astype(np.int64)
        wrong = is_named & ((named < 0) | (named >= counts))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise SinkError(
                f"row {first_row + row}: column partition is {named[row]}, and the topic has "
                f"{counts[row]} partitions, counted from 0"
            )
        partitions[is_named] = named[is_named]


def _first(mask: pa.Array) -> int:
    return int(np.argmax(mask.to_numpy(zero_copy_only=False)))
