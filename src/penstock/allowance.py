"""So many of something at once, and so many a second after that: token buckets."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT")


class Allowance:
    """One bucket. What was taken comes back over time, up to `at_once`; times are seconds."""

    __slots__ = ("_as_of", "_at_once", "_left", "_per_second")

    def __init__(self, at_once: float, per_second: float, now: float) -> None:
        self._at_once = at_once
        self._per_second = per_second
        self._left = at_once
        self._as_of = now

    def left(self, now: float) -> float:
        """How much may be taken; not above 0 where that is nothing."""
        self._left = min(self._at_once, self._left + (now - self._as_of) * self._per_second)
        self._as_of = now
        return self._left

    def wait(self, now: float) -> float:
        """In how many seconds there is a whole one to take; 0 where there is."""
        return max(0.0, 1 - self.left(now)) / self._per_second

    def spend(self, now: float, count: float) -> None:
        """Take `count` in any case."""
        self.left(now)
        self._left -= count

    def take(self, now: float, count: float = 1) -> bool:
        """Take `count` where anything is left, be it less; what is owed has to come back first."""
        if self.left(now) <= 0:
            return False
        self._left -= count
        return True


class Allowances(Generic[KeyT]):
    """A bucket for each key. The one that was not asked for longest is forgotten beyond `keys`."""

    def __init__(self, at_once: float, per_second: float, keys: int) -> None:
        self._at_once = at_once
        self._per_second = per_second
        self._keys = keys
        self._buckets: OrderedDict[KeyT, Allowance] = OrderedDict()

    def wait(self, key: KeyT, now: float) -> float:
        """As Allowance.wait."""
        bucket = self._buckets.get(key)
        return 0.0 if bucket is None else bucket.wait(now)

    def take(self, key: KeyT, now: float, count: float = 1) -> bool:
        """As Allowance.take."""
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = Allowance(self._at_once, self._per_second, now)
            if len(self._buckets) > self._keys:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(key)
        return bucket.take(now, count)
