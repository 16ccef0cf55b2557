"""Those who wait until a log is written, or flushed, up to an offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.log.interface import Outcome

if TYPE_CHECKING:
    from penstock.log.errors import LogError


class Waiters:
    """Each waits for one offset, mostly in their order; those for the same offset share."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Outcome]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def join(self, offset: int, failure: LogError | None) -> Outcome:
        """Return what is done once `offset` is reached; where all has failed, it has too."""
        if failure is not None:
            return Outcome.known(failure)
        if self._waiting and self._waiting[-1][0] == offset:
            return self._waiting[-1][1]
        outcome = Outcome()
        self._waiting.append((offset, outcome))
        return outcome

    def reached(self, end_offset: int) -> None:
        """Everything below `end_offset` is so."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if each[0] < end_offset:
                each[1].settle()
            else:
                self._waiting.append(each)

    def fail(self, failure: LogError, from_offset: int = 0) -> None:
        """What lies at `from_offset` and above will not be so."""
        waiting = self._waiting
        self._waiting = [each for each in waiting if each[0] < from_offset]
        for offset, outcome in waiting:
            if offset >= from_offset:
                outcome.settle(failure)
