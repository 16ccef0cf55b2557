"""Which rows a task reads, and for whom: what names the file of its dead letters."""

from __future__ import annotations

from typing import NamedTuple

from pyspark import TaskContext


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
        run = f"{self.query}-{self.batch:020}" if self.query else "read"
        return f"{run}-{self.topic}-{self.partition:05}-"

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
