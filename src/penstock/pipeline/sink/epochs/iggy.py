"""Rows to Iggy's servers, which have no transactions: each row is written at least once.

A message has an id of its query, batch, task and row, so that a server that leaves out messages
whose ids it has seen takes what is done again once.
"""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.clients.iggy.client import IggyClient, IggyError
from penstock.pipeline.clusters.iggy import split_name
from penstock.pipeline.sink.epochs.at_least_once import AtLeastOnceEpochs, AtLeastOnceWriter
from penstock.pipeline.sink.epochs.attempt import refusals_in_words
from penstock.pipeline.sink.topics import Topic, no_topic

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.clients.asking import Ask
    from penstock.clients.iggy.client import TopicDetails
    from penstock.pipeline.sink.epochs.attempt import Attempt
    from penstock.pipeline.sink.options import SinkOptions

LARGEST_BATCH: Final = 60_000_000
"""Bytes of a batch, which a request of 64 MiB holds with what belongs to it."""

_in_words = partial(
    refusals_in_words, "Iggy's server", IggyError, "the options user and password, or token"
)


class IggyEpochs(AtLeastOnceEpochs):
    """See `penstock.pipeline.sink.epochs.opening.Epochs`."""

    def __init__(self, options: SinkOptions, ask: Ask) -> None:
        self._options = options
        self._ask = ask
        self._client = IggyClient(options.servers, options.address.access)

    def close(self) -> None:
        self._client.close()

    def check(self) -> None:
        topics = IggyTopics(self._client, self._options.servers, self._ask)
        with _in_words():
            # Servers answer some questions of somebody who has not logged in.
            self._ask(self._client.streams)
        if self._options.topic is not None:
            topics.find(self._options.topic)

    def task(self, attempt: Attempt) -> IggyWriter:
        return IggyWriter(self._client, self._options, attempt, self._ask)


class IggyTopics:
    """Topics by `stream/topic`. None is made."""

    def __init__(self, client: IggyClient, servers: str, ask: Ask) -> None:
        self._client = client
        self._servers = servers
        self._ask = ask
        self._found: dict[str, TopicDetails] = {}

    def find(self, name: str) -> Topic:
        """Return a topic. Raises SinkError where there is none, and OSError."""
        return Topic(name, len(self._details(name).partitions), LARGEST_BATCH)

    def partition_id(self, name: str, partition: int) -> int:
        """Return the number of a partition, which older servers count from 1."""
        return self._details(name).partitions[partition].id

    def _details(self, name: str) -> TopicDetails:
        if name not in self._found:
            with _in_words():
                stream, topic = split_name(name)
                details = self._ask(lambda: self._client.topic(stream, topic))
            if details is None or not details.partitions:
                what = "no such topic" if details is None else "a topic without partitions"
                raise no_topic(name, self._servers, what)
            self._found[name] = details
        return self._found[name]


class IggyWriter(AtLeastOnceWriter):
    """See `penstock.pipeline.sink.epochs.opening.TaskWriter`."""

    def __init__(
        self, client: IggyClient, options: SinkOptions, attempt: Attempt, ask: Ask
    ) -> None:
        # The driver plans without numpy and the compiled functions.
        from penstock.pipeline.sink.iggy_packing import IggyPacker  # noqa: PLC0415
        from penstock.pipeline.sink.placing import Placing  # noqa: PLC0415

        self._client = client
        self._ask = ask
        self._topics = IggyTopics(client, options.servers, ask)
        placing = Placing(self._topics, options.topic, options.partitioner, attempt.partition)
        self._packer = IggyPacker(placing, options.batch_bytes, id_of(attempt))

    def write(self, rows: pa.RecordBatch) -> None:
        for topic, partition, count, batch in self._packer.batches(rows):
            place = *split_name(topic), self._topics.partition_id(topic, partition)
            with _in_words():
                self._ask(lambda: self._client.send(*place, count, batch))  # noqa: B023  # at once


def id_of(attempt: Attempt) -> int:
    """Return the upper half of the ids of a task's messages, the same for all its attempts."""
    task = f"{attempt.writer}/{attempt.epoch}/{attempt.partition}"
    digest = hashlib.blake2b(task.encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)
