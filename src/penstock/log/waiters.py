"""Those who wait until a log is written, or flushed, up to an offset."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from penstock.session import ended

if TYPE_CHECKING:
    from penstock.log.errors import LogError


class Outcome:
    """Whether something is done, for any number of waiters, none of which can cancel it.

    It asks nothing of the event loop, so many small requests may share one at no cost.
    """

    __slots__ = ("_calls", "_failure", "_is_done")

    def __init__(self) -> None:
        self._calls: list[Callable[[Outcome], object]] = []
        self._failure: LogError | None = None
        self._is_done = False

    @classmethod
    def known(cls, failure: LogError | None = None) -> Outcome:
        """Return one that is done."""
        outcome = cls()
        outcome.settle(failure)
        return outcome

    def settle(self, failure: LogError | None = None) -> None:
        """It is done, or will never be. The callbacks are called at once."""
        assert not self._is_done, "it is done once"
        self._is_done = True
        self._failure = failure
        calls, self._calls = self._calls, []
        for call in calls:
            call(self)

    def done(self) -> bool:
        return self._is_done

    def exception(self) -> LogError | None:
        """Return what it failed with; None where it succeeded."""
        assert self._is_done, "nobody knows yet"
        return self._failure

    def add_done_callback(self, call: Callable[[Outcome], object]) -> None:
        """Have `call` called when it is done. It does not raise, and does little."""
        if self._is_done:
            call(self)
        else:
            self._calls.append(call)

    def __await__(self) -> Generator[Any, None, None]:
        """Return when it is done. Raises LogError."""
        yield from ended(self).__await__()
        if self._failure is not None:
            raise self._failure


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
        waiting = self._waiting
        self._waiting = [each for each in waiting if each[0] >= end_offset]
        for offset, outcome in waiting:
            if offset < end_offset:
                outcome.settle()

    def fail(self, failure: LogError, from_offset: int = 0) -> None:
        """What lies at `from_offset` and above will not be so."""
        waiting = self._waiting
        self._waiting = [each for each in waiting if each[0] < from_offset]
        for offset, outcome in waiting:
            if offset >= from_offset:
                outcome.settle(failure)
