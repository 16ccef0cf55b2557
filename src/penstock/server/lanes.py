"""Whose turn it is among the requests of one connection.

A request costs a fixed number of steps here, however many wait beside it: a lane counts what came
and what ended. Conflicts are mutual, so that while a request waits for another lane none that came
to that lane later begins. Hence it may begin when as many have ended there as came before it.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, NamedTuple, TypeVar

from penstock.session import Conflicts

ItemT = TypeVar("ItemT")


class Parked(NamedTuple, Generic[ItemT]):
    """A request that waits, and for each lane that it waits for how many came there before it."""

    item: ItemT
    before: list[tuple[int, int]]


class Lanes(Generic[ItemT]):
    """The requests that did not end yet, by lane; those that wait are kept as items."""

    __slots__ = ("_arrived", "_conflicts", "_ended", "_parked")

    def __init__(self, conflicts: Conflicts) -> None:
        assert all(
            lane in conflicts[other] for lane, others in enumerate(conflicts) for other in others
        ), "conflicts are mutual"
        self._conflicts = conflicts
        self._arrived = [0] * len(conflicts)
        self._ended = [0] * len(conflicts)
        self._parked: dict[int, deque[Parked[ItemT]]] = {}

    def __bool__(self) -> bool:
        """Whether any request waits for its turn."""
        return bool(self._parked)

    def is_free(self, lane: int) -> bool:
        """Whether a request that comes now may begin at once."""
        arrived, ended = self._arrived, self._ended
        for other in self._conflicts[lane]:  # noqa: SIM110  # a generator costs more than the loop
            if arrived[other] != ended[other]:
                return False
        return True

    def start(self, lane: int) -> None:
        """Note a request that began at once. One that ended at once too need not be noted."""
        self._arrived[lane] += 1

    def park(self, lane: int, item: ItemT) -> None:
        """Keep a request until `next` returns it."""
        before = [(other, self._arrived[other]) for other in self._conflicts[lane]]
        self._parked.setdefault(lane, deque()).append(Parked(item, before))
        self._arrived[lane] += 1

    def end(self, lane: int) -> bool:
        """Note that a request ended which was started or returned by `next`.

        Returns whether any request waits for its turn.
        """
        self._ended[lane] += 1
        assert self._ended[lane] <= self._arrived[lane]
        return bool(self._parked)

    def next(self) -> ItemT | None:
        """Return a request whose turn has come, if there is one."""
        for lane, parked in self._parked.items():
            # Whatever the first one of a lane waits for, the others wait for too.
            if all(self._ended[other] == count for other, count in parked[0].before):
                item = parked.popleft().item
                if not parked:
                    del self._parked[lane]
                return item
        return None

    def clear(self) -> None:
        """Forget the requests that wait."""
        self._parked.clear()
