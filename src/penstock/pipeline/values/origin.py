"""Which rows a task reads, and for whom: what names the file of its dead letters."""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark import TaskContext

from penstock.pipeline.file_names import topic_in_name

_OFFSETS_SIZE: Final = len(".parquet") + 2 * 20 + 1
DRAFT_SIZE: Final = 34
"""Of what the name of a file that is being written has besides: a dot, and an id behind another."""


class Origin(NamedTuple):
    """What a task reads, and for which batch of which query."""

    query: str
    """Empty of a batch read: what was read again is then written again, under its own name."""
    batch: int
    topic: str
    partition: int
    start: int
    end: int

    @property
    def of_partition(self) -> str:
        """What the names of all files of this batch and partition begin with."""
        run = f"{self.query}-{self.batch:020}-" if self.query else "read-"
        rest = f"-{self.partition:05}-"
        around = len(run) + len(rest) + _OFFSETS_SIZE + DRAFT_SIZE
        return f"{run}{topic_in_name(self.topic, around)}{rest}"

    @property
    def name(self) -> str:
        """The name of the task's file."""
        return f"{self.of_partition}{self.start:020}-{self.end:020}.parquet"


def running_batch() -> tuple[str, int]:
    """Return the query that this task belongs to, empty of a batch read, and its batch."""
    context = TaskContext.get()
    query = context.getLocalProperty("sql.streaming.queryId") if context else None
    if context is None or query is None:
        return "", 0
    return query, int(context.getLocalProperty("streaming.sql.batchId") or 0)
