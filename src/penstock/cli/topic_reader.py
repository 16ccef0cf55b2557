"""Reads a topic from one place to another, as `penstock consume` is asked to."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from penstock.cli.client import chosen_partitions
from penstock.cli.message_format import Message
from penstock.cli.places import offset_of, time_of

if TYPE_CHECKING:
    from penstock.clients.kafka.client import KafkaClient
    from penstock.clients.kafka.fetched import Fetched

_WAIT_MS: Final = 500


class TopicReader:
    """Reads the partitions of one topic in turn.

    A place is 'start', 'end', an offset, -N for N before the end, or @TIME. Raises UsageError for
    what is none, and for a partition that is not there.
    """

    def __init__(self, client: KafkaClient, topic: str, partition: int | None) -> None:
        from penstock.clients.kafka.client import EARLIEST, LATEST
        from penstock.clients.kafka.committed import CommittedBatches

        self._client = client
        self._topic = topic
        self._chosen = chosen_partitions(client, topic, partition)
        self._firsts = self._offsets(EARLIEST)
        self._ends = self._offsets(LATEST)
        self._positions: dict[int, int] = {}
        self._committed = {
            each: CommittedBatches(partial(self._committed_at, each)) for each in self._chosen
        }

    def begin(self, place: str) -> None:
        """Go to a place, or to what is nearest to it."""
        for each, offset in self._places(place, "--offset").items():
            self._positions[each] = min(max(offset, self._firsts[each]), self._ends[each])

    def messages(self, until: str) -> Iterator[Message]:
        """Yield what lies before a place, as far as it is there now."""
        for partition, offset in self._places(until, "--until").items():
            yield from self._messages_before(partition, min(offset, self._ends[partition]))

    def follow(self, until: str | None) -> Iterator[Message]:
        """Yield what lies before a place and what is yet to come, for ever without a place."""
        stops = self._places(until, "--until") if until is not None else {}
        left = self._chosen
        while left := [each for each in left if self._positions[each] < stops.get(each, 1 << 63)]:
            for partition in left:
                position = self._positions[partition]
                wait_ms = _WAIT_MS // len(left)
                fetched = self._client.fetch(
                    self._topic, partition, position, max_wait_ms=wait_ms, committed=True
                )
                yield from self._decoded(partition, fetched.batches, stops.get(partition))

    def _messages_before(self, partition: int, stop: int) -> Iterator[Message]:
        place = (self._topic, partition, self._positions[partition], stop)
        for batches in self._client.fetch_below(*place):
            yield from self._decoded(partition, batches, stop)

    def _decoded(self, partition: int, batches: memoryview, stop: int | None) -> Iterator[Message]:
        from penstock.clients.kafka.record_batch import decode_batches
        from penstock.log.header import walk

        position = self._positions[partition]
        for _, header in walk(batches):
            self._positions[partition] = header.next_offset
        kept = self._committed[partition].keep(batches)
        for record in chain.from_iterable(map(decode_batches, kept)):
            if record.offset >= position and (stop is None or record.offset < stop):
                yield Message(self._topic, partition, record)

    def _committed_at(self, partition: int, offset: int) -> Fetched:
        return self._client.fetch(self._topic, partition, offset, committed=True)

    def _places(self, text: str, option: str) -> dict[int, int]:
        if text.startswith("@"):
            found = self._offsets(time_of(text, option))
            return {each: found.get(each, end) for each, end in self._ends.items()}
        ends = self._ends.items()
        return {each: offset_of(text, option, self._firsts[each], end) for each, end in ends}

    def _offsets(self, timestamp: int) -> dict[int, int]:
        places = {(self._topic, partition): timestamp for partition in self._chosen}
        found = self._client.list_offsets(places, committed=True)
        return {place[1]: offset for place, offset in found.items() if offset is not None}
