"""What a partition remembers of producers that have names, as Pulsar's do, so that a message that
is sent again is not written twice (PIP-6).

Per producer the highest sequence number is kept: for whoever comes anew under the name, what has
numbers up to it is a duplicate. Numbers may be left out. While a producer goes on, and when it
comes back after its connection broke, that holds up to the number that it has passed: one that
batches by key sends 0 and 5 together, and 1 to 4 behind them. Its batches are in the order of their
first numbers.

The state is a function of the batches in the log, as that of idempotent producers is
(`penstock.broker.producers.idempotence`): a header carries a number made of the producer's name,
below those of producers that have no name, and the last sequence number in the fields of both epoch
and sequence; the entry says the first one. In a transaction the header carries the transaction's
producer there, and the entry says name and numbers.
"""

from __future__ import annotations

import struct
import time
from array import array
from collections import OrderedDict
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from penstock import limits
from penstock.broker.producers.remembered import RememberedProducers
from penstock.limits import PRODUCERS_REMEMBERED
from penstock.log.header import ATTRIBUTE_TRANSACTIONAL, HEADER_SIZE, NO_PRODUCER_ID, Magic
from penstock.records.pulsar.entry import Numbers, numbered_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log.header import BatchHeader
    from penstock.memory import SharedAccount
    from penstock.session import Buffer

SEQUENCES: Final = 1 << 46
"""Sequence numbers below this are looked at: as many as a header has room for."""

_SEQUENCE_BITS: Final = 31
_LOW_BITS: Final = (1 << _SEQUENCE_BITS) - 1
_VERSION: Final = 2
_HEAD: Final = struct.Struct(">BI")
_PRODUCER: Final = struct.Struct(">qqqq")
_PRODUCERS: Final = {_VERSION: _PRODUCER, 1: struct.Struct(">qqq")}
"""By version; in the first one all numbers up to the highest were passed."""
_PRODUCER_BYTES: Final = 576
"""About what a producer takes of memory."""
_FIELDS: Final = 3
"""What is kept of a batch."""
_BEFORE: Final = 16 * _FIELDS
"""What is kept of batches before the last one when those are forgotten that can't be taken back."""


def id_of_name(name: str) -> int:
    """Return the number that stands for a producer's name: below NO_PRODUCER_ID, of 62 bits."""
    digest = blake2b(name.encode(), digest_size=8).digest()
    return NO_PRODUCER_ID - 1 - (int.from_bytes(digest) >> 2)


def epoch_and_sequence(sequence: int) -> tuple[int, int]:
    """Return what a header says of a sequence number: its fields of epoch and base sequence."""
    return sequence >> _SEQUENCE_BITS, sequence & _LOW_BITS


class NamedProducer:
    """The messages of one producer so far: the highest sequence number, the one up to which no more
    come for the first time while it goes on, and the offset of the last batch.
    """

    __slots__ = ("_before", "_settled_at", "offset", "passed", "sequence", "used_at")

    def __init__(self, sequence: int, passed: int, offset: int) -> None:
        self.sequence = sequence
        self.passed = passed
        self.offset = offset
        self.used_at = time.monotonic()
        self._before = array("q")
        """The three of each batch before it that may be the last one again."""
        self._settled_at = _BEFORE

    def has(self, numbers: Numbers, come_with: int) -> bool:
        """Whether an entry of these numbers is there already, from a producer that found the
        number `come_with` under its name when it came anew; -1 of one that came back.
        """
        return numbers.last <= self.sequence and numbers.first <= max(self.passed, come_with)

    def wrote(self, numbers: Numbers, offset: int, kept_below: int) -> None:
        """It wrote once more; messages at `kept_below` and above may have to be `cut`."""
        before = self._before
        before.append(self.sequence)
        before.append(self.passed)
        before.append(self.offset)
        if len(before) > self._settled_at:
            self._settle(kept_below)
        self.sequence = max(self.sequence, numbers.last)
        self.passed = max(self.passed, numbers.passed)
        self.offset = offset
        self.used_at = time.monotonic()

    def cut(self, end_offset: int) -> bool:
        """Forget the messages from an offset on; False where none is left."""
        while self.offset >= end_offset:
            if not self._before:
                return False
            self.offset = self._before.pop()
            self.passed = self._before.pop()
            self.sequence = self._before.pop()
        return True

    def _settle(self, kept_below: int) -> None:
        before = self._before
        kept = len(before) - _FIELDS
        while kept > 0 and before[kept + _FIELDS - 1] >= kept_below:
            kept -= _FIELDS
        del before[:kept]
        # As often as it doubles: many may be on their way to the disk.
        self._settled_at = max(_BEFORE, 2 * len(before))


class NamedProducers(RememberedProducers[NamedProducer]):
    """The producers of one partition by the numbers of their names."""

    def __init__(self, account: SharedAccount) -> None:
        super().__init__(account, _PRODUCER_BYTES)
        self._oldest = 0.0
        """No producer has written before, as far as is known: all are looked at when one may have
        been idle for too long, and not for each that finds no room.
        """

    def last(self, producer_id: int) -> NamedProducer | None:
        """Return what a producer wrote last, which may not be flushed yet; None for a new one."""
        return self._producers.get(producer_id)

    def last_batches(self) -> list[int]:
        """Return the base offset of the batch that each producer wrote last."""
        return [each.offset for each in self._producers.values()]

    def check_room(self, producer_id: int) -> None:
        """Have room for a producer. Raises TooManyProducersError."""
        if producer_id not in self._producers:
            self._make_room()

    def remember(self, producer_id: int, numbers: Numbers, offset: int, kept_below: int) -> None:
        """Remember an entry that was appended at an offset.

        Those at `kept_below` and above may have to be `cut`.
        """
        producer = self._producers.get(producer_id)
        if producer is not None:
            producer.wrote(numbers, offset, kept_below)
            return
        self._producers[producer_id] = NamedProducer(numbers.last, numbers.passed, offset)
        if len(self._producers) > PRODUCERS_REMEMBERED:
            self._producers.popitem(last=False)
        self._count()

    def forget_idle(self) -> None:
        """Forget those that have not written for long."""
        oldest = time.monotonic() - limits.PRODUCER_IDLE_SECONDS
        if oldest <= self._oldest:
            return
        # They are in the order in which they came: to move one for each message would be dear.
        self._producers = OrderedDict(
            (each, producer)
            for each, producer in self._producers.items()
            if producer.used_at >= oldest
        )
        self._oldest = min((each.used_at for each in self._producers.values()), default=oldest)
        self._count()

    def forget(self, producer_id: int) -> None:
        """A producer has ended for good, and nobody else has its name."""
        if self._producers.pop(producer_id, None) is not None:
            self._count()

    def update(self, header: BatchHeader, batch: Buffer = b"") -> None:
        """Remember a batch that is in the log."""
        if header.producer_id < NO_PRODUCER_ID:
            numbers = _numbers(header, batch)
            self.remember(header.producer_id, numbers, header.base_offset, header.next_offset)
        elif header.magic == Magic.PULSAR and header.attributes & ATTRIBUTE_TRANSACTIONAL:
            numbered = numbered_message(memoryview(batch)[HEADER_SIZE:])
            if numbered is not None and numbered.numbers.last < SEQUENCES:
                name, offset = id_of_name(numbered.producer_name), header.base_offset
                self.remember(name, numbered.numbers, offset, header.next_offset)

    def cut(self, end_offset: int) -> None:
        """Forget the batches from `end_offset` on: they could not be written."""
        for producer_id, producer in list(self._producers.items()):
            if not producer.cut(end_offset):
                del self._producers[producer_id]
        self._count()

    def snapshot(self) -> bytes:
        """Return the state for `restore`."""
        parts = [_HEAD.pack(_VERSION, len(self._producers))]
        parts += [
            _PRODUCER.pack(producer_id, producer.sequence, producer.passed, producer.offset)
            for producer_id, producer in self._producers.items()
        ]
        return b"".join(parts)

    def restore(self, snapshot: bytes) -> Iterator[None]:
        """Replace the state by a snapshot's, in steps; b"" is the state of an empty log.

        Raises ValueError for bytes that no `snapshot` of this version wrote, and changes nothing.
        """
        restored: OrderedDict[int, NamedProducer] = OrderedDict()
        for each, sequence, *passed, offset in _rows(snapshot) if snapshot else ():
            restored[each] = NamedProducer(sequence, passed[0] if passed else sequence, offset)
            yield
        self._producers = restored
        self._count()


def _numbers(header: BatchHeader, batch: Buffer) -> Numbers:
    if header.last_offset_delta:
        numbered = numbered_message(memoryview(batch)[HEADER_SIZE:])
        if numbered is not None:
            return numbered.numbers
    last = (header.producer_epoch << _SEQUENCE_BITS) + header.base_sequence
    return Numbers(last, last, last)


def _rows(snapshot: bytes) -> Iterator[tuple[int, ...]]:
    """Return what there is of each producer: its number, its sequences and its last offset."""
    try:
        version, count = _HEAD.unpack_from(snapshot)
        layout = _PRODUCERS.get(version)
        if layout is None or len(snapshot) != _HEAD.size + count * layout.size:
            raise ValueError(f"the snapshot of named producers is not of version {_VERSION}")
        return layout.iter_unpack(memoryview(snapshot)[_HEAD.size :])
    except struct.error as error:
        raise ValueError("the snapshot of named producers is cut off") from error
