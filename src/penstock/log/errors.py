"""What can go wrong with a log, as its callers see it."""

from __future__ import annotations


class LogError(Exception):
    """Something is wrong with one partition's log; the message says which file and what.

    It is for operators. `for_clients` is what a client may read of it.
    """

    @property
    def for_clients(self) -> str:
        return "the storage of this partition failed; the broker's log says why"


class OffsetOutOfRangeError(LogError):
    """The offset lies below the first or above the next one that the log can hold."""

    def __init__(self, offset: int, start_offset: int, end_offset: int) -> None:
        super().__init__(f"offset {offset} is outside {start_offset}..{end_offset}")
        self.offset = offset
        self.start_offset = start_offset
        self.end_offset = end_offset

    @property
    def for_clients(self) -> str:
        return str(self)


class CorruptBatchError(LogError):
    """The stored batch at `base_offset` is damaged; `next_offset` is the first one after it.

    Nothing of it is handed out. Reading goes on at `next_offset`, which begins at byte
    `end_position` where that is known.
    """

    def __init__(
        self,
        base_offset: int,
        next_offset: int,
        path: str,
        position: int,
        end_position: int | None = None,
    ) -> None:
        super().__init__(
            f"offsets {base_offset}..{next_offset - 1} are damaged: {path} at byte {position}"
        )
        self.base_offset = base_offset
        self.next_offset = next_offset
        self.path = path
        self.position = position
        self.end_position = end_position

    @property
    def for_clients(self) -> str:
        return f"offsets {self.base_offset}..{self.next_offset - 1} are damaged"


class LogReadError(LogError):
    """The disk did not give the bytes; whether they are sound is unknown."""


class InvalidBatchError(LogError):
    """The batch to append contradicts itself: its length, magic, epoch or count is impossible."""

    @property
    def for_clients(self) -> str:
        return str(self)


class LogWriteError(LogError):
    """A write failed and nothing is left of it: the same may succeed a moment later.

    The message names no file, since clients get it.
    """

    @classmethod
    def of(cls, error: OSError) -> LogWriteError:
        return cls(f"a write failed: {reason_of(error)}")

    @property
    def for_clients(self) -> str:
        return str(self)


class LogFailedError(LogError):
    """A flush failed, so the log takes no more writes until it is opened anew.

    A failed flush must not be tried again: the kernel may have dropped the pages and then report
    success (fsyncgate, PostgreSQL 2018).
    """


class LogClosedError(LogError):
    """The log was closed or deleted."""

    @property
    def for_clients(self) -> str:
        return "the partition is closed"


class LogMissingError(LogError):
    """What was safe is not there, or belongs to another log: nothing may be written in its place.

    Only the operator can say what is to be done, by `penstock recover`.
    """

    @property
    def for_clients(self) -> str:
        return "data of the partition is missing; the broker's log says more"


class LogNotOpenError(LogError):
    """The log was not opened yet, or can't be opened now."""

    @property
    def for_clients(self) -> str:
        return "the partition can't be opened now; the broker's log says why"


def reason_of(error: BaseException) -> str:
    """Return what is wrong without where: no client hears of files."""
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__
