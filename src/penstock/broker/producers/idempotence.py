"""What a partition remembers of its idempotent producers, so that a retry is not written twice.

Per producer id the last five batches are kept (KIP-98: a client has at most five requests in
flight). A batch that is one of the five again is a duplicate and keeps its first offset; any other
batch must follow on the last one's sequence number. The state is a function of the batch headers in
the log: a snapshot lies beside the log's checkpoint, and headers after it are replayed by `update`.

Whoever is not known may go on with any sequence, as with Kafka (KIP-360), so to forget a producer
costs no more than that its last batches may be written twice, if it sends them again. Where there
are too many, those are forgotten who have not written for so long that they don't; who comes anew
is refused until there are some.
"""

from __future__ import annotations

import struct
import time
from array import array
from collections import OrderedDict
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.errors import (
    InvalidProducerEpochError,
    OutOfOrderSequenceError,
)
from penstock.broker.producers.named import NamedProducers
from penstock.broker.producers.remembered import RememberedProducers
from penstock.limits import PRODUCERS_REMEMBERED
from penstock.log.header import ATTRIBUTE_CONTROL, NO_PRODUCER_ID, NO_SEQUENCE
from penstock.records.kafka.control import coordinator_epoch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log.header import BatchHeader
    from penstock.memory import SharedAccount
    from penstock.session import Buffer

BATCHES_REMEMBERED: Final = 5

NO_COORDINATOR: Final = -1

SEQUENCES: Final = 1 << 31
"""Sequence numbers are 31 bits and wrap to 0."""

_VERSION: Final = 3
_HEAD: Final = struct.Struct(">BI")
_PRODUCER: Final = struct.Struct(">qhiB")
_PRODUCERS: Final = {_VERSION: _PRODUCER, 2: _PRODUCER, 1: struct.Struct(">qhB")}
"""By version; the first one had no coordinator's epoch."""
_BATCH: Final = struct.Struct(">iiq")
"""In the first two versions. Now the numbers of all batches lie there as they do in memory, for a
checkpoint has all producers packed in one turn of the event loop.
"""
_PRODUCER_BYTES: Final = 576
"""About what a producer takes of memory."""


class Duplicate(NamedTuple):
    """The batch is in the log already, at this base offset, but maybe not flushed yet."""

    offset: int


class KnownProducer(NamedTuple):
    """What there is to say of a producer whose batches are remembered."""

    id: int
    epoch: int
    coordinator_epoch: int
    last_sequence: int
    idle_seconds: float


class _Written(NamedTuple):
    first_sequence: int
    last_sequence: int
    offset: int


_FIELDS: Final = len(_Written._fields)
_KEPT: Final = BATCHES_REMEMBERED * _FIELDS
_BATCH_BYTES: Final = _FIELDS * array("q").itemsize


class _Producer:
    __slots__ = ("before", "coordinator_epoch", "epoch", "used_at", "written")

    def __init__(self, epoch: int, before: _Producer | None = None) -> None:
        self.epoch = epoch
        self.coordinator_epoch: int = before.coordinator_epoch if before else NO_COORDINATOR
        """Of the last end of a transaction."""
        self.written = array("q")
        """The last five that can't be taken back any more, and those since, each as the fields of
        `_Written`: objects would take three times as much.
        """
        self.before = before
        """What holds again if all of its batches are taken back."""
        self.used_at = time.monotonic()

    @property
    def last_sequence(self) -> int:
        return self.written[-2]

    @property
    def last_offset(self) -> int:
        return self.written[-1]

    def add(self, batch: _Written, kept_below: int) -> None:
        written = self.written
        written.extend(batch)
        # The offset of the sixth, then of the first.
        while len(written) > _KEPT and written[_KEPT + _FIELDS - 1] < kept_below:
            del written[:_FIELDS]
        if written[_FIELDS - 1] < kept_below:
            self.before = None
        self.used_at = time.monotonic()

    def offset_of(self, first_sequence: int, last_sequence: int) -> int | None:
        """Return where the batch of these sequences is, if it is remembered."""
        written = self.written
        for at in range(0, len(written), _FIELDS):
            if written[at] == first_sequence and written[at + 1] == last_sequence:
                return written[at + 2]
        return None

    def cut(self, end_offset: int) -> None:
        """Forget the batches from an offset on."""
        while self.written and self.written[-1] >= end_offset:
            del self.written[-_FIELDS:]


class ProducerStates(RememberedProducers[_Producer]):
    """The producers of one partition. Batches without a producer id pass through untouched.

    `named` are those that have names instead, with a state of their own in the log's checkpoints.
    """

    def __init__(self, account: SharedAccount) -> None:
        super().__init__(account, _PRODUCER_BYTES)
        self.named = NamedProducers(account)

    def knows(self, producer_id: int) -> bool:
        """Whether a producer is remembered."""
        return producer_id in self._producers

    def known(self) -> Iterator[KnownProducer]:
        """Yield those that are remembered now, whoever comes or goes meanwhile."""
        now = time.monotonic()
        for producer_id, producer in tuple(self._producers.items()):
            if producer.written:
                yield KnownProducer(
                    producer_id,
                    producer.epoch,
                    producer.coordinator_epoch,
                    producer.last_sequence,
                    now - producer.used_at,
                )

    def last_batches(self) -> list[int]:
        """Return the base offsets of the batches that were written last, of each producer one."""
        numbered = [each.last_offset for each in self._producers.values() if each.written]
        return numbered + self.named.last_batches()

    def check(self, header: BatchHeader) -> Duplicate | None:
        """Return where the batch already is, or None when it may be appended.

        Raises InvalidProducerEpochError for a producer that a newer epoch replaced,
        OutOfOrderSequenceError where batches before this one are missing, and TooManyProducersError
        for a new one where there is no room for it.
        """
        if header.producer_id < 0:
            return None
        producer = self._producers.get(header.producer_id)
        if producer is None:
            if header.base_sequence != NO_SEQUENCE:
                self._make_room()
            return None
        if header.producer_epoch < producer.epoch:
            raise InvalidProducerEpochError(
                f"producer {header.producer_id} has epoch {producer.epoch}, "
                f"the batch has {header.producer_epoch}"
            )
        if header.base_sequence == NO_SEQUENCE:
            return None
        expected = 0
        if header.producer_epoch == producer.epoch:
            offset = producer.offset_of(header.base_sequence, _last_sequence(header))
            if offset is not None:
                return Duplicate(offset)
            expected = (producer.last_sequence + 1) % SEQUENCES
        if header.base_sequence != expected:
            raise OutOfOrderSequenceError(
                f"producer {header.producer_id} sent sequence {header.base_sequence}, "
                f"{expected} comes next"
            )
        return None

    def appended(
        self, header: BatchHeader, offset: int, kept_below: int, batch: Buffer = b""
    ) -> None:
        """Remember a batch that was appended at an offset; those of `named` who appends remembers.

        Batches at `kept_below` and above may have to be `cut`.
        """
        if header.producer_id > NO_PRODUCER_ID:
            self._remember(header._replace(base_offset=offset), kept_below, batch)

    def update(self, header: BatchHeader, batch: Buffer = b"") -> None:
        """Remember a batch that is in the log; the header carries its base offset."""
        self._remember(header, header.next_offset, batch)

    def _remember(self, header: BatchHeader, kept_below: int, batch: Buffer) -> None:
        if header.producer_id < 0:
            return
        if header.base_sequence == NO_SEQUENCE:
            self._fence(header)
            if header.attributes & ATTRIBUTE_CONTROL and header.producer_id in self._producers:
                self._producers[header.producer_id].coordinator_epoch = coordinator_epoch(batch)
            return
        known = producer = self._producers.pop(header.producer_id, None)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = _Producer(header.producer_epoch, producer)
        producer.add(
            _Written(header.base_sequence, _last_sequence(header), header.base_offset),
            kept_below,
        )
        self._producers[header.producer_id] = producer
        if len(self._producers) > PRODUCERS_REMEMBERED:
            self._producers.popitem(last=False)
        if known is None:
            self._count()

    def _fence(self, header: BatchHeader) -> None:
        """Remember the epoch of a batch that has no sequence: of a marker at the end of a
        transaction, whose producer goes on at that epoch with sequence 0 (KIP-890).
        """
        before = self._producers.get(header.producer_id)
        if before is not None and before.epoch < header.producer_epoch:
            producer = _Producer(header.producer_epoch, before)
            no_messages = _Written(NO_SEQUENCE, NO_SEQUENCE, header.base_offset)
            producer.written.extend(no_messages)
            self._producers[header.producer_id] = producer
            self._producers.move_to_end(header.producer_id)

    def cut(self, end_offset: int) -> None:
        """Forget the batches from `end_offset` on: they could not be written."""
        self.named.cut(end_offset)
        for producer_id in list(self._written_last(end_offset)):
            producer: _Producer | None = self._producers[producer_id]
            while producer is not None:
                producer.cut(end_offset)
                if producer.written:
                    break
                producer = producer.before
            if producer is None:
                del self._producers[producer_id]
            else:
                self._producers[producer_id] = producer
        self._count()

    def _written_last(self, end_offset: int) -> Iterator[int]:
        """Yield the ids of those whose last batch lies at `end_offset` or above: the newest."""
        for producer_id, producer in reversed(self._producers.items()):
            if producer.last_offset < end_offset:
                return
            yield producer_id

    def close(self) -> None:
        """The partition is gone."""
        super().close()
        self.named.close()

    def snapshot(self) -> bytes:
        """Return the state for `restore`."""
        parts = [_HEAD.pack(_VERSION, len(self._producers))]
        for producer_id, producer in self._producers.items():
            last = producer.written[-_KEPT:]
            batches = len(last) // _FIELDS
            epoch, coordinator_epoch = producer.epoch, producer.coordinator_epoch
            parts.append(_PRODUCER.pack(producer_id, epoch, coordinator_epoch, batches))
            parts.append(last.tobytes())
        return b"".join(parts)

    def restore(self, snapshot: bytes) -> Iterator[None]:
        """Replace the state by a snapshot's, in steps; b"" is the state of an empty log.

        Raises ValueError for bytes that no `snapshot` of this version wrote, and changes nothing:
        the state then has to come from the headers of the whole log.
        """
        restored: OrderedDict[int, _Producer] = OrderedDict()
        try:
            for producer_id, producer in _parse(snapshot) if snapshot else ():
                restored[producer_id] = producer
                yield
        except struct.error as error:
            raise ValueError("the snapshot of producers is cut off") from error
        self._producers = restored
        self._count()


def _last_sequence(header: BatchHeader) -> int:
    return (header.base_sequence + header.last_offset_delta) % SEQUENCES


def _parse(snapshot: bytes) -> Iterator[tuple[int, _Producer]]:
    """Yield producers and their ids. Raises ValueError and struct.error."""
    version, count = _HEAD.unpack_from(snapshot)
    layout = _PRODUCERS.get(version)
    if layout is None:
        raise ValueError(f"the snapshot of producers has version {version}, not {_VERSION}")
    position = _HEAD.size
    for _ in range(count):
        producer_id, epoch, *coordinator, batches = layout.unpack_from(snapshot, position)
        position += layout.size
        if not 1 <= batches <= BATCHES_REMEMBERED:
            raise ValueError(f"the snapshot of producers has one of {batches} batches")
        producer = _Producer(epoch)
        producer.coordinator_epoch = coordinator[0] if coordinator else NO_COORDINATOR
        end = position + batches * (_BATCH.size if version < _VERSION else _BATCH_BYTES)
        if end > len(snapshot):
            raise ValueError("the snapshot of producers is cut off")
        if version < _VERSION:
            producer.written.extend(chain.from_iterable(_BATCH.iter_unpack(snapshot[position:end])))
        else:
            producer.written.frombytes(snapshot[position:end])
        position = end
        yield producer_id, producer
    if position != len(snapshot):
        raise ValueError("the snapshot of producers has bytes left over")
