"""Topics of Iggy's servers, which the options name `stream/topic`. Offsets are Iggy's own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from penstock.clients.iggy.client import IggyClient, IggyError, PolledBatch
from penstock.log.header import Magic, build_header, stamp
from penstock.pipeline.clusters.asking import Asking
from penstock.pipeline.source.dividing import Extent
from penstock.pipeline.source.errors import SourceError
from penstock.pipeline.source.offsets import EARLIEST, TopicPartition
from penstock.pipeline.source.runs import next_offset
from penstock.records.iggy.cut import cut_iggy_batch

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from penstock.clients.iggy.client import Partition, TopicDetails
    from penstock.clients.kafka.fetched import Fetched
    from penstock.pipeline.source.dividing import Extents
    from penstock.pipeline.source.offsets import Offsets, TopicIds
    from penstock.pipeline.source.options import SourceOptions
    from penstock.pipeline.source.planning import DataFolder, Task
    from penstock.session import Buffer

POLLED_MESSAGES: Final = 10_000
"""At most so many in one answer."""
_PAUSE_SECONDS: Final = 0.1


class _Asking(Asking):
    def __init__(self, options: SourceOptions, client: IggyClient, *, answered: bool) -> None:
        self._client = client
        super().__init__(
            options,
            client,
            IggyError,
            "the options user and password, or token",
            answered=answered,
        )


class IggyCluster(_Asking):
    """See `penstock.pipeline.clusters.opening.OpenCluster`."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options, iggy_client(options), answered=False)

    def topics_like(self, pattern: re.Pattern[str]) -> list[str]:
        streams = self._ask(self._client.streams)
        names = [
            f"{stream.name}/{topic.name}"
            for stream in streams
            for topic in self._ask(lambda: self._client.topics(stream.name))  # noqa: B023  # at once
        ]
        return sorted(name for name in names if pattern.fullmatch(name))

    def partitions(self, topics: Iterable[str]) -> dict[str, int]:
        found = {topic: self._topic(topic) for topic in topics}
        return {topic: len(each.partitions) for topic, each in found.items() if each is not None}

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        # Numbers are given again to what is made anew, but not at the same microsecond.
        found = {topic: self._topic(topic) for topic in topics}
        return {
            topic: f"{each.topic.id}@{each.topic.created_at}"
            for topic, each in found.items()
            if each is not None
        }

    def ends(self, sources: Sequence[TopicPartition], end: int) -> Offsets:
        ends = {source: _end(each) for source, each in self._partitions(sources).items()}
        if end != EARLIEST:
            return ends
        return {source: self._first(source) or 0 for source in ends if ends[source]} | {
            source: 0 for source in ends if not ends[source]
        }

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        return {source: self._first(source, 1000 * time_ms) for source, time_ms in times.items()}

    def extents(self, sources: Sequence[TopicPartition]) -> Extents:
        return {
            source: [Extent(self._first(source) or 0, _end(each), each.size)]
            for source, each in self._partitions(sources).items()
            if _end(each)
        }

    def hold(self, starts: Offsets) -> None:
        """Nothing: Iggy's servers keep nothing for readers."""

    def release(self) -> None:
        """Nothing: see `hold`."""

    def commit(self, group: str, offsets: Offsets) -> None:  # noqa: ARG002
        raise SourceError(f"progress can't be committed as {group}: groups are Kafka's")

    def data_folder(self) -> DataFolder | None:
        return None

    def folders(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, Path]:  # noqa: ARG002
        return {}

    def _topic(self, name: str) -> TopicDetails | None:
        return self._ask(lambda: self._client.topic(*split_name(name)))

    def _partitions(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, Partition]:
        found = {}
        for name in dict.fromkeys(source.topic for source in sources):
            topic = self._topic(name)
            # Older servers count partitions from 1: what counts here is their order.
            for index, each in enumerate(topic.partitions if topic else ()):
                found[TopicPartition(name, index)] = each
        return {source: found[source] for source in sources if source in found}

    def _first(self, source: TopicPartition, since_us: int | None = None) -> int | None:
        place = *split_name(source.topic), source.partition
        return self._ask(lambda: self._client.first_offset(*place, since_us))


class IggyBatches(_Asking):
    """See `penstock.pipeline.clusters.opening.Batches`."""

    def __init__(self, task: Task, options: SourceOptions, client: IggyClient) -> None:
        super().__init__(options, client, answered=True)  # for the driver has just read the offsets
        self._task = task
        self._timeout_s = options.poll_timeout_s

    def runs(self) -> Iterator[Buffer]:
        source, position, end = self._task.range
        deadline = time.monotonic() + self._timeout_s
        while position < end:
            run = bytearray()
            for batch in self._polled(position, min(end - position, POLLED_MESSAGES)):
                run += stored(batch)
                run += batch.body
            position = next_offset(run, position)
            if run:
                yield run
                deadline = time.monotonic() + self._timeout_s
            elif time.monotonic() > deadline:
                raise SourceError(
                    f"{self._servers} had nothing of {source} at offset {position} for as long as "
                    "kafkaConsumer.pollTimeoutMs"
                )
            else:
                time.sleep(_PAUSE_SECONDS)

    def earlier(self, start: int, end: int) -> Iterable[Buffer]:  # noqa: ARG002
        return ()  # Only Pulsar's messages come in chunks.

    def aborted(self, offset: int) -> Fetched:
        raise SourceError(f"{self._task.range.source} holds a transaction at offset {offset}")

    def _polled(self, position: int, count: int) -> list[PolledBatch]:
        source = self._task.range.source
        place = *split_name(source.topic), source.partition
        return self._ask(lambda: self._client.poll(*place, position, count))


def iggy_client(options: SourceOptions) -> IggyClient:
    """Return a client of the servers that the options name, which connects when it is asked."""
    return IggyClient(options.servers, options.address.access, timeout_s=options.kafka.timeout_s)


def split_name(name: str) -> tuple[str, str]:
    """Return stream and topic; raises SourceError for what is not both."""
    stream, separator, topic = name.partition("/")
    if not separator or not stream or not topic:
        raise SourceError(
            f"{name!r} names no topic of Iggy: subscribe, assign and offsets name stream/topic"
        )
    return stream, topic


def _end(partition: Partition) -> int:
    """Return the offset behind the last message, 0 for a partition that never had one."""
    if not partition.messages_count and not partition.current_offset:
        return 0
    return partition.current_offset + 1


def stored(batch: PolledBatch) -> bytearray:
    """Return the header that the log would put in front of a batch."""
    origin_ms = batch.header.origin_timestamp // 1000
    last = cut_iggy_batch(batch.body, 0, batch.header.message_count).last_offset_delta
    header = build_header(
        Magic.IGGY,
        batch.body,
        record_count=batch.header.message_count,
        base_timestamp=origin_ms,
        max_timestamp=origin_ms,
        last_offset_delta=last,
    )
    stamp(header, batch.header.base_offset, 0)
    return header
