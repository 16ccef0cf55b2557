"""What a test waits for in a topic, and what it hears when that does not come."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.testing.record import Record
    from penstock.testing.topics import Stored

_SHOWN: Final = 10


class Wanted:
    """So many records, of which a condition holds if there is one, in so many seconds from now."""

    def __init__(
        self, topic: str, count: int, where: Callable[[Record], bool] | None, seconds: float
    ) -> None:
        self.found: list[Record] = []
        self._topic = topic
        self._count = count
        self._where = where
        self._seconds = seconds
        self._others: list[Record] = []
        self._deadline = time.monotonic() + seconds

    def take(self, stored: Sequence[Stored]) -> bool:
        """Look at what came, and return whether there is enough."""
        for each in stored:
            for record in each.records():
                is_wanted = self._where is None or self._where(record)
                (self.found if is_wanted else self._others).append(record)
        return len(self.found) >= self._count

    def check(self, topics: Callable[[], list[str]]) -> None:
        """Raise AssertionError when the time is over."""
        if time.monotonic() < self._deadline:
            return
        which = "" if self._where is None else " for which the condition holds"
        raise AssertionError(
            f"waited {self._seconds:g} s for {_counted(self._count)}{which} in {self._topic!r}; "
            f"{self._what_is_there(topics())}"
        )

    def _what_is_there(self, topics: Sequence[str]) -> str:
        if self.found or self._others:
            which = f", and {_counted(len(self._others))} besides" if self._others else ""
            there = sorted([*self.found, *self._others], key=_age)
            left_out = ["..."] if len(there) > _SHOWN else []
            lines = [*left_out, *map(str, there[-_SHOWN:])]
            return "\n  ".join([f"there: {_counted(len(self.found))}{which}", *lines])
        return f"nothing is there, and the topics are: {', '.join(topics) or 'none'}"


def _age(record: Record) -> tuple[int, int, int]:
    return record.timestamp_ms, record.partition, record.offset


def _counted(count: int) -> str:
    return f"{count} record{'' if count == 1 else 's'}"
