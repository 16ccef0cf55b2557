"""At which offset each leader epoch of a partition began (KIP-101, KIP-279).

Every owner of a partition opens it with a higher epoch than those before, and stamps that into the
batches that it writes. So the history is a function of the batch headers in the log: a snapshot of
it lies in the log's checkpoint, and headers after it are replayed by `update`. It answers a client
whether the log is still the one it has read.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.limits import LEADER_EPOCHS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.log.header import BatchHeader
    from penstock.session import Buffer

_VERSION: Final = 1
_HEAD: Final = struct.Struct(">BI")
_ENTRY: Final = struct.Struct(">iq")


class EpochEnd(NamedTuple):
    """The first offset that was not written at `epoch` or before."""

    epoch: int
    end_offset: int


UNKNOWN_EPOCH: Final = EpochEnd(-1, -1)
"""Kafka's answer for an epoch that a partition has not come to (KIP-101)."""


class LeaderEpochs:
    """The epochs at which something was written, and the one at which the partition is open."""

    def __init__(self) -> None:
        # Both ascend.
        self._epochs: list[int] = []
        self._starts: list[int] = []

    def __len__(self) -> int:
        return len(self._epochs)

    def update(self, header: BatchHeader, _batch: Buffer = b"") -> None:
        """Remember a stored batch."""
        self.begin(header.leader_epoch, header.base_offset)

    def begin(self, epoch: int, offset: int) -> None:
        """What is written from `offset` on is written at `epoch`."""
        if self._epochs and epoch <= self._epochs[-1]:
            return
        while self._starts and self._starts[-1] >= offset:  # Nothing was written at that epoch.
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(offset)
        if len(self._epochs) > LEADER_EPOCHS:
            del self._epochs[0], self._starts[0]
        assert len(self._epochs) == len(self._starts) <= LEADER_EPOCHS

    def at(self, offset: int) -> int:
        """Return the epoch at which the message at `offset` was, or will be, written."""
        assert self._epochs, "a partition is open at an epoch"
        return self._epochs[max(0, bisect_right(self._starts, offset) - 1)]

    def end_of(self, epoch: int, end_offset: int) -> EpochEnd:
        """Return the largest known epoch up to `epoch`, and where the one after it began.

        `end_offset` is the end of the current epoch. UNKNOWN_EPOCH for an epoch that is yet to
        come, and for a negative one. Before the first one that is known there may have been others:
        such an epoch ends where the first known one begins, as Kafka has it
        (LeaderEpochFileCache.endOffsetFor).
        """
        if epoch < 0 or not self._epochs or epoch > self._epochs[-1]:
            return UNKNOWN_EPOCH
        after = bisect_right(self._epochs, epoch)
        if after == 0:
            return EpochEnd(epoch, self._starts[0])
        known = self._epochs[after - 1]
        return EpochEnd(known, self._starts[after] if after < len(self._starts) else end_offset)

    def snapshot(self) -> bytes:
        """Return the state for `restore`."""
        entries = zip(self._epochs, self._starts, strict=True)
        return _HEAD.pack(_VERSION, len(self)) + b"".join(_ENTRY.pack(*each) for each in entries)

    def restore(self, snapshot: bytes) -> Iterable[None]:
        """Replace the state by a snapshot's, in no further steps; b"" is that of an empty log.

        Raises ValueError for bytes that no `snapshot` of this version wrote, and changes nothing:
        the state then has to come from the headers of the whole log.
        """
        entries = _parse(snapshot) if snapshot else []
        self._epochs = [epoch for epoch, _ in entries]
        self._starts = [start for _, start in entries]
        return ()


def _parse(snapshot: bytes) -> list[tuple[int, int]]:
    if len(snapshot) < _HEAD.size:
        raise ValueError("the snapshot of leader epochs is cut off")
    version, count = _HEAD.unpack_from(snapshot)
    if version != _VERSION:
        raise ValueError(f"the snapshot of leader epochs has version {version}, not {_VERSION}")
    if len(snapshot) != _HEAD.size + count * _ENTRY.size:
        raise ValueError(f"the snapshot of {count} leader epochs has {len(snapshot)} bytes")
    entries = [(epoch, start) for epoch, start in _ENTRY.iter_unpack(snapshot[_HEAD.size :])]
    for (epoch, start), (next_epoch, next_start) in pairwise(entries):
        if not (epoch < next_epoch and start < next_start):
            raise ValueError("the snapshot of leader epochs is out of order")
    return entries
