"""Rows to Iggy's servers, which have no transactions: each row is written at least once.

A message has an id of its query, batch, task and row, so that a server that leaves out messages
whose ids it has seen takes what is done again once.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from penstock.clients.access import LoginError
from penstock.clients.closing import Closing
from penstock.clients.iggy.client import IggyClient, IggyError
from penstock.pipeline.clusters.iggy import split_name
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.topics import Topic
from penstock.pipeline.source.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from penstock.clients.iggy.client import TopicDetails
    from penstock.clients.kafka.coordinator import ProducerState
    from penstock.clients.kafka.transactions import Ask
    from penstock.pipeline.sink.epochs.attempt import Attempt
    from penstock.pipeline.sink.options import SinkOptions

LARGEST_BATCH: Final = 60_000_000
"""Bytes of a batch, which a request of 64 MiB holds with what belongs to it."""


class IggyEpochs(Closing):
    """See `penstock.pipeline.sink.epochs.opening.Epochs`. No epoch is known to a server."""

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

    def last(self, writer: str) -> int:  # noqa: ARG002
        return -1

    @contextmanager
    def at_work(self, writer: str) -> Iterator[int]:  # noqa: ARG002
        yield -1

    def task(self, attempt: Attempt) -> IggyWriter:
        return IggyWriter(self._client, self._options, attempt, self._ask)

    def commit(self, writer: str, epoch: int, producers: Sequence[ProducerState]) -> bool:  # noqa: ARG002
        return True

    def abort(self, writer: str) -> None:
        """Nothing: what was sent is there."""


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
                raise SinkError(
                    f"topic {name!r}: {what} at {self._servers}: create it, or correct the option "
                    "or column topic"
                )
            self._found[name] = details
        return self._found[name]


class IggyWriter(Closing):
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

    def close(self) -> None:
        """Nothing: the connection is somebody else's."""

    def write(self, rows: pa.RecordBatch) -> None:
        for topic, partition, count, batch in self._packer.batches(rows):
            place = *split_name(topic), self._topics.partition_id(topic, partition)
            with _in_words():
                self._ask(lambda: self._client.send(*place, count, batch))  # noqa: B023  # at once

    def finish(self) -> None:
        return None

    def abort(self) -> None:
        """Nothing: what was sent is there."""


def id_of(attempt: Attempt) -> int:
    """Return the upper half of the ids of a task's messages, the same for all its attempts."""
    task = f"{attempt.writer}/{attempt.epoch}/{attempt.partition}"
    digest = hashlib.blake2b(task.encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


@contextmanager
def _in_words() -> Iterator[None]:
    """Raise SinkError for what a server refuses."""
    try:
        yield
    except SourceError as error:
        raise SinkError(str(error)) from error
    except LoginError as error:
        raise SinkError(f"{error}. Correct the options user and password, or token") from error
    except IggyError as error:
        raise SinkError(f"Iggy's server refuses: {error}") from error
