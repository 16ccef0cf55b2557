"""What a partition remembers of its idempotent producers, so that a retry is not written twice.

Per producer id the last five batches are kept (KIP-98: a client has at most five requests in
flight). A batch that is one of the five again is a duplicate and keeps its first offset; any other
batch must follow on the last one's sequence number. The state is a function of the batch headers in
the log: a snapshot lies beside the log's checkpoint, and headers after it are replayed by `update`.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.errors import InvalidProducerEpochError, OutOfOrderSequenceError
from penstock.limits import PRODUCERS_REMEMBERED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log.header import BatchHeader

BATCHES_REMEMBERED: Final = 5

SEQUENCES: Final = 1 << 31
"""Sequence numbers are 31 bits and wrap to 0."""

_VERSION: Final = 1
_HEAD: Final = struct.Struct(">BI")
_PRODUCER: Final = struct.Struct(">qhB")
_BATCH: Final = struct.Struct(">iiq")


class Duplicate(NamedTuple):
    """The batch is in the log already, at this base offset, but maybe not flushed yet."""

    offset: int


class _Written(NamedTuple):
    first_sequence: int
    last_sequence: int
    offset: int


class _Producer:
    __slots__ = ("before", "epoch", "written")

    def __init__(self, epoch: int, before: _Producer | None = None) -> None:
        self.epoch = epoch
        self.written: deque[_Written] = deque()
        """The last five that can't be taken back any more, and those since."""
        self.before = before
        """What holds again if all of its batches are taken back."""

    def add(self, batch: _Written, kept_below: int) -> None:
        written = self.written
        written.append(batch)
        while len(written) > BATCHES_REMEMBERED and written[BATCHES_REMEMBERED].offset < kept_below:
            written.popleft()
        if written[0].offset < kept_below:
            self.before = None


class ProducerStates:
    """The producers of one partition. Batches without a producer id pass through untouched."""

    def __init__(self) -> None:
        # In the order of the last write, so that the first is the one to forget.
        self._producers: dict[int, _Producer] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def check(self, header: BatchHeader) -> Duplicate | None:
        """Return where the batch already is, or None when it may be appended.

        Raises InvalidProducerEpochError for a producer that a newer epoch replaced and
        OutOfOrderSequenceError where batches before this one are missing.
        """
        producer = self._producers.get(header.producer_id)
        if header.producer_id < 0 or producer is None:
            return None
        if header.producer_epoch < producer.epoch:
            raise InvalidProducerEpochError(
                f"producer {header.producer_id} has epoch {producer.epoch}, "
                f"the batch has {header.producer_epoch}"
            )
        expected = 0
        if header.producer_epoch == producer.epoch:
            first, last = header.base_sequence, _last_sequence(header)
            for written in producer.written:
                if written.first_sequence == first and written.last_sequence == last:
                    return Duplicate(written.offset)
            expected = (producer.written[-1].last_sequence + 1) % SEQUENCES
        if header.base_sequence != expected:
            raise OutOfOrderSequenceError(
                f"producer {header.producer_id} sent sequence {header.base_sequence}, "
                f"{expected} comes next"
            )
        return None

    def update(self, header: BatchHeader, kept_below: int | None = None) -> None:
        """Remember a batch that was appended; the header carries its base offset.

        Batches at `kept_below` and above may have to be `cut`; without it, none may.
        """
        if header.producer_id < 0:
            return
        producer = self._producers.pop(header.producer_id, None)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = _Producer(header.producer_epoch, producer)
        producer.add(
            _Written(header.base_sequence, _last_sequence(header), header.base_offset),
            header.next_offset if kept_below is None else kept_below,
        )
        self._producers[header.producer_id] = producer
        if len(self._producers) > PRODUCERS_REMEMBERED:
            del self._producers[next(iter(self._producers))]

    def cut(self, end_offset: int) -> None:
        """Forget the batches from `end_offset` on: they could not be written."""
        for producer_id in list(self._written_last(end_offset)):
            producer: _Producer | None = self._producers[producer_id]
            while producer is not None:
                while producer.written and producer.written[-1].offset >= end_offset:
                    producer.written.pop()
                if producer.written:
                    break
                producer = producer.before
            if producer is None:
                del self._producers[producer_id]
            else:
                self._producers[producer_id] = producer

    def _written_last(self, end_offset: int) -> Iterator[int]:
        """Yield the ids of those whose last batch lies at `end_offset` or above: the newest."""
        for producer_id, producer in reversed(self._producers.items()):
            if producer.written[-1].offset < end_offset:
                return
            yield producer_id

    def snapshot(self) -> bytes:
        """Return the state for `restore`."""
        parts = [_HEAD.pack(_VERSION, len(self._producers))]
        for producer_id, producer in self._producers.items():
            last = list(producer.written)[-BATCHES_REMEMBERED:]
            parts.append(_PRODUCER.pack(producer_id, producer.epoch, len(last)))
            parts += [_BATCH.pack(*written) for written in last]
        return b"".join(parts)

    def restore(self, snapshot: bytes) -> None:
        """Replace the state by a snapshot's; b"" is the state of an empty log.

        Raises ValueError for bytes that no `snapshot` of this version wrote, and changes nothing:
        the state then has to come from the headers of the whole log.
        """
        try:
            self._producers = _parse(snapshot) if snapshot else {}
        except struct.error as error:
            raise ValueError("the snapshot of producers is cut off") from error


def _last_sequence(header: BatchHeader) -> int:
    return (header.base_sequence + header.last_offset_delta) % SEQUENCES


def _parse(snapshot: bytes) -> dict[int, _Producer]:
    version, count = _HEAD.unpack_from(snapshot)
    if version != _VERSION:
        raise ValueError(f"the snapshot of producers has version {version}, not {_VERSION}")
    producers: dict[int, _Producer] = {}
    position = _HEAD.size
    for _ in range(count):
        producer_id, epoch, batches = _PRODUCER.unpack_from(snapshot, position)
        position += _PRODUCER.size
        if not 1 <= batches <= BATCHES_REMEMBERED:
            raise ValueError(f"the snapshot of producers has one of {batches} batches")
        producer = producers[producer_id] = _Producer(epoch)
        for _ in range(batches):
            producer.written.append(_Written._make(_BATCH.unpack_from(snapshot, position)))
            position += _BATCH.size
    if position != len(snapshot):
        raise ValueError("the snapshot of producers has bytes left over")
    return producers
