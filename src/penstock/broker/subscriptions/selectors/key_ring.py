"""Keys spread over consumers by themselves, as Pulsar's brokers spread them (AUTO_SPLIT).

Each consumer has points on a ring of slots, and the slots up to each point are its own: Pulsar's
ConsistentHashingStickyKeyConsumerSelector with its default of 100 points. Who joins or leaves moves
only its own share of the slots.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Final

from penstock.broker.subscriptions.selectors.key_owners import ConsumerT, KeyOwners
from penstock.records import murmur3_32

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

POINTS_PER_CONSUMER: Final = 100
SLOTS: Final = 65_535
"""They count from 1."""


class KeyRing(KeyOwners[ConsumerT]):
    """Of several consumers at one point the one that came first has it.

    Consumers of one name are told apart by numbers, each the lowest that is free.
    """

    def __init__(self) -> None:
        super().__init__()
        self._points: list[int] = []
        self._at: dict[int, list[ConsumerT]] = {}
        self._numbers: dict[str, dict[int, ConsumerT]] = {}
        self._points_of: dict[ConsumerT, array[int]] = {}
        """Many may leave in one turn, and to find out a consumer's points takes half a
        millisecond."""

    def _slot(self, hashed: int) -> int:
        return hashed % SLOTS + 1

    def owner(self, slot: int) -> ConsumerT | None:
        points = self._points
        if not points:
            return None
        place = bisect_left(points, slot)
        return self._at[points[place if place < len(points) else 0]][0]

    def check(self, consumer: ConsumerT) -> None:
        """All are welcome."""

    def add(self, consumer: ConsumerT) -> Sequence[tuple[int, int]]:
        numbers = self._numbers.setdefault(consumer.name, {})
        number = next(each for each in range(len(numbers) + 1) if each not in numbers)
        numbers[number] = consumer
        points = self._points_of[consumer] = array("H", _points(consumer.name, number))
        gained = []
        for point in points:
            there = self._at.setdefault(point, [])
            there.append(consumer)
            if len(there) == 1:
                insort(self._points, point)
                gained.append(point)
        return self._up_to(gained)

    def remove(self, consumer: ConsumerT) -> Sequence[tuple[int, int]]:
        numbers = self._numbers[consumer.name]
        number = next(each for each, other in numbers.items() if other is consumer)
        del numbers[number]
        if not numbers:
            del self._numbers[consumer.name]
        points = self._points_of.pop(consumer)
        lost = self._up_to(point for point in points if self._at[point][0] is consumer)
        for point in points:
            there = self._at[point]
            there.remove(consumer)
            if not there:
                del self._at[point]
                del self._points[bisect_left(self._points, point)]
        return lost

    def _up_to(self, points: Iterable[int]) -> list[tuple[int, int]]:
        """Return the slots behind the point before each of some points, up to itself."""
        found = []
        for point in points:
            place = bisect_left(self._points, point)
            if place:
                found.append((self._points[place - 1] + 1, point + 1))
            else:
                found += [(1, point + 1), (self._points[-1] + 1, SLOTS + 1)]
        return found


def _points(name: str, number: int) -> list[int]:
    """Return the points of a consumer: some may be the same."""
    return [
        (murmur3_32(f"{name}\0{number}\0{point}".encode()) & 0x7FFFFFFF) % SLOTS + 1
        for point in range(POINTS_PER_CONSUMER)
    ]
