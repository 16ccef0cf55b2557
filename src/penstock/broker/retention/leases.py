"""Ranges that somebody reads from a log's files: retention keeps them for a while.

They are in memory: a restart ends them, and so does their time, which whoever reads on renews.
Nobody keeps a log for ever, under however many names: what is due of a partition, and was held back
for too long, goes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from penstock.broker.errors import BrokerError
from penstock.limits import RANGE_HELD_SECONDS, RANGE_LEASES

NOTHING: Final = 1 << 63
"""An offset behind all that there may be."""


class TooManyLeasesError(BrokerError):
    """So many offsets are held that no more can be."""


class _Lease(NamedTuple):
    offset: int
    until: float


class RangeLeases:
    """All methods belong to the event loop's thread; times are seconds of `now`."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._held: dict[int, dict[str, _Lease]] = {}
        """By partition id and holder."""
        self._held_back: dict[int, float] = {}
        """Since when something of a partition is due and is held."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def hold(self, holder: str, partition_id: int, offset: int, seconds: float) -> None:
        """Have retention keep what lies from `offset` on, in place of what the holder has there.

        Raises TooManyLeasesError.
        """
        held = self._held.get(partition_id, {})
        if holder not in held:
            if self._count >= RANGE_LEASES:
                self._drop_ended()
            if self._count >= RANGE_LEASES:
                raise TooManyLeasesError(f"{self._count} ranges are being read")
            self._count += 1
            held = self._held.setdefault(partition_id, {})
        held[holder] = _Lease(offset, self._now() + seconds)

    def release(self, holder: str) -> None:
        """Give all back that a holder has."""
        for partition_id in [each for each, held in self._held.items() if holder in held]:
            self._drop(partition_id, [holder])

    def forget(self, partition_ids: Iterable[int]) -> None:
        """These partitions are gone."""
        for partition_id in partition_ids:
            self._drop(partition_id, tuple(self._held.get(partition_id, ())))
            self._held_back.pop(partition_id, None)

    def needed_from(self, partition_id: int) -> int:
        """Return the first offset that is held of a partition; NOTHING where none is."""
        now = self._now()
        held = self._held.get(partition_id, {})
        self._drop(partition_id, [name for name, lease in held.items() if lease.until <= now])
        return min((lease.offset for lease in held.values()), default=NOTHING)

    def may_hold(self, partition_id: int, *, is_due: bool) -> bool:
        """Whether what is held of a partition may stay; `is_due` says whether it were to go else.

        To be asked at each look at the partition.
        """
        if not is_due:
            self._held_back.pop(partition_id, None)
            return True
        since = self._held_back.setdefault(partition_id, self._now())
        return self._now() - since <= RANGE_HELD_SECONDS

    def _drop_ended(self) -> None:
        for partition_id in tuple(self._held):
            self.needed_from(partition_id)

    def _drop(self, partition_id: int, holders: Iterable[str]) -> None:
        held = self._held.get(partition_id, {})
        for holder in holders:
            del held[holder]
            self._count -= 1
        if not held:
            self._held.pop(partition_id, None)
