"""Topics of Pulsar's servers. An offset here is a message's id in one number.

Ids of one partition ascend, and so do these numbers, but they leave gaps: they count nothing.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from penstock.clients.pulsar.client import MessageId, PulsarClient, Reader, Received
from penstock.clients.pulsar.connection import RefusedError
from penstock.log.header import Magic, build_header, stamp
from penstock.pipeline.clusters.asking import Asking
from penstock.pipeline.source.errors import SourceError
from penstock.pipeline.source.offsets import EARLIEST, TopicPartition
from penstock.records.pulsar.entry import (
    ChecksumMismatchError,
    Entry,
    MalformedEntryError,
    read_entry,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from penstock.clients.kafka.fetched import Fetched
    from penstock.pipeline.source.dividing import Extents
    from penstock.pipeline.source.offsets import Offsets, TopicIds
    from penstock.pipeline.source.options import SourceOptions
    from penstock.pipeline.source.planning import DataFolder, Task
    from penstock.session import Buffer

LEDGER_BITS: Final = 28
ENTRY_BITS: Final = 23
MESSAGE_BITS: Final = 12
"""An offset is ledger, entry, and place in the entry's batch, one behind the other."""

RUN_BYTES: Final = 2 << 20
"""Bytes that are decoded at once."""
_PERSISTENT: Final = "persistent://"
_PARTITION: Final = re.compile(r"-partition-\d+$")


class _Asking(Asking):
    def __init__(self, options: SourceOptions, *, answered: bool) -> None:
        self._client = PulsarClient(
            options.servers, options.address.access, timeout_s=options.kafka.timeout_s
        )
        super().__init__(options, self._client, RefusedError, "the option token", answered=answered)


class PulsarCluster(_Asking):
    """See `penstock.pipeline.clusters.opening.OpenCluster`."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options, answered=False)
        self._readers: dict[TopicPartition, Reader] = {}

    def topics_like(self, pattern: re.Pattern[str]) -> list[str]:
        tenant, namespace, _ = split_name(pattern.pattern)
        listed = self._ask(lambda: self._client.topics(f"{tenant}/{namespace}"))
        unsaid = "" if pattern.pattern.startswith(_PERSISTENT) else _PERSISTENT
        if "/" not in pattern.pattern:
            unsaid = f"{_PERSISTENT}{tenant}/{namespace}/"
        names = {_PARTITION.sub("", name).removeprefix(unsaid) for name in listed}
        return sorted(name for name in names if pattern.fullmatch(name))

    def partitions(self, topics: Iterable[str]) -> dict[str, int]:
        found = {}
        for topic in topics:
            if count := self._ask(lambda: partition_count(self._client, topic)):  # noqa: B023  # now
                found[topic] = count
        return found

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:  # noqa: ARG002
        return {}  # The protocol names none.

    def ends(self, sources: Sequence[TopicPartition], end: int) -> Offsets:
        # What lies before the first message may never have been there, and nobody says so.
        return {each: 0 if end == EARLIEST else self._end(each) for each in sources}

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        raise SourceError(f"{list(times)}: Pulsar does not say which message is of a time")

    def extents(self, sources: Sequence[TopicPartition]) -> Extents:  # noqa: ARG002
        return {}

    def hold(self, starts: Offsets) -> None:
        """Nothing: a subscription would be needed, that outlives the reader."""

    def release(self) -> None:
        """Nothing: see `hold`."""

    def commit(self, group: str, offsets: Offsets) -> None:  # noqa: ARG002
        raise SourceError(f"progress can't be committed as {group}: groups are Kafka's")

    def data_folder(self) -> DataFolder | None:
        return None

    def folders(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, Path]:  # noqa: ARG002
        return {}

    def _end(self, source: TopicPartition) -> int:
        if source not in self._readers:
            name = self._ask(lambda: partition_name(self._client, source))
            self._readers[source] = self._client.reader(name)
        last = self._ask(self._readers[source].last)
        return 0 if last.ledger < 0 else offset_of(MessageId(last.ledger, last.entry + 1))


class PulsarBatches(_Asking):
    """See `penstock.pipeline.clusters.opening.Batches`."""

    def __init__(self, task: Task, options: SourceOptions) -> None:
        super().__init__(options, answered=True)  # for the driver has just read the offsets
        self._task = task
        self._timeout_s = options.poll_timeout_s
        self._reader: Reader | None = None

    def runs(self) -> Iterator[Buffer]:
        try:
            yield from self._runs()
        finally:
            self.close()

    def _runs(self) -> Iterator[Buffer]:
        _, position, end = self._task.range
        run = bytearray()
        while position < end:
            received = self._ask(lambda: self._next(position))  # noqa: B023  # at once
            first = offset_of(received.id)
            if first >= end:
                break
            entry = self._entry(received)
            if first >= position - position % (1 << MESSAGE_BITS):
                run += stored(entry, received.entry, first)
                run += received.entry
            position = max(position, offset_of(received.id._replace(entry=received.id.entry + 1)))
            if len(run) >= RUN_BYTES:
                yield run
                run = bytearray()
        if run:
            yield run

    def earlier(self, start: int, end: int) -> Iterable[Buffer]:  # noqa: ARG002
        return ()  # Messages in chunks are refused.

    def aborted(self, offset: int) -> Fetched:
        raise SourceError(f"{self._task.range.source} holds a transaction at offset {offset}")

    def _next(self, position: int) -> Received:
        source = self._task.range.source
        deadline = time.monotonic() + self._timeout_s
        if self._reader is None:
            reader = self._client.reader(partition_name(self._client, source))
            reader.seek(id_of(position))
            self._reader = reader
        try:
            return self._reader.receive(max(deadline - time.monotonic(), 0.001))
        except TimeoutError:
            raise SourceError(
                f"{self._servers} had nothing of {source} at offset {position} for as long as "
                "kafkaConsumer.pollTimeoutMs"
            ) from None
        except OSError:
            self._reader = None
            raise

    def _entry(self, received: Received) -> Entry:
        where = f"{self._task.range.source} at message id {received.id.ledger}:{received.id.entry}"
        try:
            entry = read_entry(received.entry)
        except (ChecksumMismatchError, MalformedEntryError) as error:
            raise SourceError(f"{where} can't be read: {error}") from error
        if entry.is_chunk or entry.metadata.encryption_keys:
            what = "one part of a large message" if entry.is_chunk else "encrypted"
            raise SourceError(f"{where} is {what}, which pulsar:// can't read")
        count = entry.message_count if entry.is_batch else 1
        if count > 1 << MESSAGE_BITS:
            raise SourceError(f"{where} is a batch of {count} messages, over {1 << MESSAGE_BITS}")
        assert self._reader is not None
        self._reader.used(count)
        return entry


def split_name(name: str) -> tuple[str, str, str]:
    """Return tenant, namespace and topic; raises SourceError for another form."""
    parts = name.removeprefix(_PERSISTENT).split("/")
    if len(parts) == 1 and parts[0]:
        return "public", "default", parts[0]
    if len(parts) != 3 or not all(parts) or "://" in name.removeprefix(_PERSISTENT):
        raise SourceError(
            f"{name!r} names no topic of Pulsar: write persistent://tenant/namespace/topic, or "
            "topic for one of public/default"
        )
    return parts[0], parts[1], parts[2]


def full_name(name: str) -> str:
    """Return a topic's whole name; raises SourceError."""
    return _PERSISTENT + "/".join(split_name(name))


def partition_count(client: PulsarClient, name: str) -> int:
    """Return how many partitions are read and written: 1 of a topic without, 0 if there is none."""
    tenant, namespace, _ = split_name(name)
    full = full_name(name)
    return client.partitions(full) or int(full in client.topics(f"{tenant}/{namespace}"))


def partition_name(client: PulsarClient, source: TopicPartition) -> str:
    """Return the name under which a partition is read."""
    name = full_name(source.topic)
    return f"{name}-partition-{source.partition}" if client.partitions(name) else name


def offset_of(position: MessageId) -> int:
    """Return the offset of an entry's first message; raises SourceError where it does not fit."""
    if position.ledger >> LEDGER_BITS or position.entry >> ENTRY_BITS:
        raise SourceError(
            f"message id {position.ledger}:{position.entry} does not fit into an offset: ledgers "
            f"go up to {(1 << LEDGER_BITS) - 1}, entries up to {(1 << ENTRY_BITS) - 1}"
        )
    return (position.ledger << ENTRY_BITS | position.entry) << MESSAGE_BITS


def id_of(offset: int) -> MessageId:
    """Return the id of the entry that holds an offset; 0 is before all."""
    if offset == 0:
        return MessageId(-1, -1)
    entry = offset >> MESSAGE_BITS
    return MessageId(entry >> ENTRY_BITS, entry & (1 << ENTRY_BITS) - 1)


def stored(entry: Entry, body: memoryview, offset: int) -> bytearray:
    """Return the header that the log would put in front of an entry."""
    metadata = entry.metadata
    header = build_header(
        Magic.PULSAR,
        body,
        record_count=entry.message_count if entry.is_batch else 1,
        base_timestamp=metadata.publish_time,
        max_timestamp=metadata.event_time or metadata.publish_time,
    )
    stamp(header, offset, 0)
    return header
