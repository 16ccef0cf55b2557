"""What the broker needs of one partition's log, wherever its bytes live."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from penstock.session import ended

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.log.batches import Batches, StoredBatch
    from penstock.log.config import LogConfig
    from penstock.log.errors import LogError
    from penstock.log.header import BatchHeader
    from penstock.log.pieces import State
    from penstock.session import Buffer, FileRange


class LogSummary(NamedTuple):
    """What a log holds, in segments, bytes and offsets; messages end before `end_offset`."""

    segment_count: int = 0
    size_bytes: int = 0
    start_offset: int = 0
    end_offset: int = 0


class SegmentExtent(NamedTuple):
    """Batches from `base_offset` up to `end_offset`, in one piece."""

    base_offset: int
    end_offset: int
    size_bytes: int


class StoredSegment(NamedTuple):
    """A segment that holds something, and what is the latest time in it."""

    base_offset: int
    end_offset: int
    size_bytes: int
    latest_ms: int
    """The highest timestamp of its messages. Where none has one, when it was written last;
    a time far off while the index has to be mended."""

    is_active: bool
    """Whether it takes the next batch."""


class OldestSegment(NamedTuple):
    """What a closed log's folder says of the log and of its oldest segment; nothing is proven."""

    size_bytes: int
    """Of the whole log."""
    segment: StoredSegment | None


class ClosedLog(NamedTuple):
    """What a closed log's folder says of the log; nothing is proven."""

    full_segments: Sequence[tuple[int, int]]
    """Of each the offset behind its last, and its size in bytes; the oldest first."""
    last_bytes: int
    """Bytes of the segment that takes the next batch."""
    states: Mapping[str, bytes]
    """What its owners have in the checkpoint."""


class SavedState(NamedTuple):
    """An owner's state as of `replay_from`, the first offset that it knows nothing of."""

    state: bytes
    """What the owner's snapshot was; b"" where there is none."""

    replay_from: int


class Rewriting(Protocol):
    """Full pieces of a log that follow one another, and the one that is to take their place.

    `Log.rewriting` makes it. Then one thread, any, reads the `batches`, writes what replaces them
    and seals it, and `Log.replace` puts it in its place.
    """

    start: int
    """The offset at which the first of them begins."""
    end: int
    """The offset behind the last of them."""
    size: int
    """Bytes of the new piece, so far."""

    @property
    def source_count(self) -> int:
        """How many pieces it replaces."""

    @property
    def source_bytes(self) -> int:
        """Bytes of those that it replaces."""

    def batches(self, chunk_bytes: int) -> Iterator[memoryview]:
        """Yield all batches that are stored there, whole ones, about so many bytes at a time.

        Raises CorruptBatchError where one is damaged, and OSError.
        """

    def write(
        self,
        batches: Buffer,
        positions: Sequence[int],
        last_offsets: Sequence[int],
        latest: Sequence[int],
    ) -> None:
        """Add batches that follow on those before, without a gap between offsets.

        Of each batch: where it begins in `batches`, its last offset, and the highest timestamp of
        these batches up to it.
        Raises OSError.
        """

    def seal(self) -> None:
        """Have all of it on stable storage. Raises OSError."""

    def discard(self) -> None:
        """Remove what was written, unless it has taken its place. Raises OSError."""

    def plan(self) -> RewritingPlan | None:
        """Return what another process does it by; None where only this one can."""

    @property
    def sealed(self) -> Sealed:
        """What there is, once it is sealed."""

    def take(self, sealed: Sealed) -> None:
        """Take what another process has sealed by the plan."""


class Sealed(NamedTuple):
    """A new piece on stable storage, in bytes: of its batches, and of its two indexes."""

    size: int
    index_sizes: tuple[int, int]


class RewritingPlan(Protocol):
    """What can be pickled of a `Rewriting`."""

    def begin(self) -> Rewriting:
        """Return one that does the same, but is never put in its place."""


class Log(Protocol):
    """Batches in, batches out, and how far they are safe: all on the event loop's thread.

    A log is opened with a leader epoch (KIP-101): every batch that is appended is stamped with it,
    and a stored batch that has a higher one is damaged. Only one owner has a log open at a time.
    """

    @property
    def leader_epoch(self) -> int:
        """What batches are stamped with."""

    @property
    def start_offset(self) -> int:
        """The first offset that can be read."""

    @property
    def end_offset(self) -> int:
        """The next offset to be given to a batch. It falls where a write fails."""

    @property
    def written_offset(self) -> int:
        """Everything below is written and can be read: it survives the end of the process."""

    @property
    def flushed_offset(self) -> int:
        """Everything below is on stable storage."""

    @property
    def written_bytes(self) -> int:
        """Bytes of all batches that were written since the log was opened, trimmed or not."""

    @property
    def flushed_bytes(self) -> int:
        """Those of them that are on stable storage."""

    @property
    def size_bytes(self) -> int:
        """Bytes of all stored batches."""

    def bytes_from(self, offset: int) -> int:
        """Return at most how many bytes are stored from the batch with `offset` on.

        That is what is there where a reader stands that came this far lately, near the end.
        """

    @property
    def files(self) -> list[Path]:
        """Files that are there as long as the log is open; none where it keeps none."""

    @property
    def segment_count(self) -> int:
        """In how many pieces the batches are stored."""

    @property
    def replacements(self) -> int:
        """How often something was replaced: what was read at another count may be there no more."""

    @property
    def full_segment_ends(self) -> list[int]:
        """Where each piece ends that takes no more batches, the oldest first: the offset behind."""

    @property
    def segment_extents(self) -> list[SegmentExtent]:
        """The pieces in which something is stored, the oldest first."""

    def stored_segments(self) -> AsyncGenerator[StoredSegment, None]:
        """Yield the pieces in which something is stored, the oldest first.

        Raises LogReadError and LogClosedError.
        """

    async def bytes_behind(self, offset: int) -> int:
        """Return how many bytes are stored from the batch with `offset` on, which is looked up.

        Below the start offset that is all. Raises OffsetOutOfRangeError above the end offset,
        LogReadError and LogClosedError.
        """

    def reconfigure(self, config: LogConfig) -> None:
        """From now on this holds, but for what can only be chosen when a log is opened."""

    @property
    def failure(self) -> LogError | None:
        """Why the log takes no more writes, if it takes none."""

    def register_state(self, name: str, snapshot: Callable[[], State]) -> SavedState:
        """Keep the state of the owner `name` in this log's checkpoints, and return what was kept.

        `snapshot` is called at each checkpoint for the state as of `end_offset`; a large one is
        best left in the pieces that its owner has. Owners register
        once, before the first append. The state of an owner that doesn't register stays as it is.
        """

    def keep_states(self) -> None:
        """States have changed without an append: they are in the next checkpoint."""

    def watch(self, advanced: Callable[[], None], cut: Callable[[int], None]) -> None:
        """Have `advanced` called whenever `written_offset` or `flushed_offset` has moved, once for
        all that moved together, and `cut` with the new end offset where a write has failed and
        what was appended from there on is taken back.
        """

    def append(self, parts: Sequence[Buffer], header: BatchHeader) -> int:
        """Put one batch in line to be written, without suspending, and return its base offset.

        `parts[0]` begins with the header and is writable: offset and epoch are stamped into it.
        The parts belong to the log until the batch is written. `header` is the same, parsed: the
        caller has checked the checksum, so it has it at hand. Appends are stored in the order of
        their calls. Raises InvalidBatchError, LogClosedError and, after a flush has failed,
        LogFailedError.
        """

    def written(self, offset: int) -> Outcome:
        """Done when `offset` is written. Where it can't be, it fails with LogWriteError: nothing of
        that batch and of those behind it is left, and their offsets are given out again. So it is
        asked for in the same turn of the loop as the append.

        Fails with LogFailedError and LogClosedError too.
        """

    def flushed(self, offset: int) -> Outcome:
        """Done when `offset` is on stable storage; fails as `written` does."""

    def flush_soon(self, *, at_once: bool = False) -> None:
        """Have what was appended flushed without anybody waiting, within the flush interval."""

    async def read(self, offset: int, max_bytes: int, end: int | None = None) -> Batches:
        """Return whole stored batches, from the one that contains `offset` on.

        The first is whole even if larger than `max_bytes`, the others fit (KIP-74). All of them lie
        below `end`: nothing is returned from there on. Without it, all that was appended by now is
        waited for until it is written, and then read.
        Their checksums were verified: a damaged batch ends the answer before it.
        Raises OffsetOutOfRangeError, CorruptBatchError where `offset` is in a damaged batch,
        LogReadError and LogClosedError.
        """

    def passed(self, offset: int) -> None:
        """A reader came to `offset` without a read, and goes on there."""

    def sound_range(
        self, offset: int, max_bytes: int, magic: int, end: int | None = None
    ) -> FileRange | None:
        """Return what `read` would, or less, as a range of a file, without reading it.

        Only of batches in the encoding of `magic` whose checksums were verified since the log was
        opened. None where that is not known, or where few bytes are there: then `read` is the way.
        Raises OffsetOutOfRangeError and LogClosedError.
        """

    def sound_batches(
        self, offset: int, max_bytes: int, max_records: int, magic: int, end: int | None = None
    ) -> list[StoredBatch]:
        """Return the first batches of what `sound_range` would, as ranges without their headers.

        Only those with a large body, and with no more than `max_records` records together. Empty
        where `read` is the way. Raises OffsetOutOfRangeError and LogClosedError.
        """

    async def batch_at(self, offset: int) -> BatchHeader | None:
        """Return the header of the batch that contains `offset`, or None at the end.

        Raises what `read` raises.
        """

    def headers(self, start: int, end: int | None = None) -> AsyncGenerator[BatchHeader, None]:
        """Yield the headers of the batches that hold `start` up to `end`, but for damaged ones.

        Raises OffsetOutOfRangeError, LogReadError, LogClosedError.
        """

    def batches(self, start: int, end: int) -> AsyncGenerator[tuple[BatchHeader, memoryview], None]:
        """Yield what `headers` does, each with its whole batch; all below `end` is written."""

    async def find_time(self, timestamp_ms: int) -> int | None:
        """Return the first offset of the first batch whose highest timestamp is at least that.

        Raises LogReadError, LogClosedError.
        """

    async def trim(self, offset: int) -> None:
        """Give up everything below `offset`, for good: it is the start offset from now on.

        Durable on return, and what holds nothing else is removed by then. A batch that `offset` is
        in the middle of is kept whole, as Kafka keeps it (KIP-107). Nothing happens where the start
        offset is as high already. Raises OffsetOutOfRangeError above the end offset, LogWriteError
        where that could not be made durable yet, LogFailedError and LogClosedError.
        """

    async def roll(self) -> None:
        """Have a new piece take what comes, so that what there is can be written anew.

        Raises LogWriteError, LogFailedError and LogClosedError.
        """

    async def rewriting(self, start: int, end: int) -> Rewriting | None:
        """Return how the full pieces that hold the offsets from `start` up to `end`, both where one
        begins, are written anew as one; None where there are none, or not flushed. Raises LogError.
        """

    async def replace(self, rewriting: Rewriting) -> bool:
        """Put what was written anew, and sealed, in its place, durably. All of the old is there
        after a crash, or all of the new. False where something of the old was trimmed meanwhile.

        Nothing is read of the log for a moment. Raises LogWriteError where nothing has changed,
        LogFailedError where the log has to be opened anew, and LogClosedError.
        """

    async def finish(self) -> None:
        """Flush and write a checkpoint, so that `close` has nothing left to do. Raises LogError."""

    def close(self) -> None:
        """Flush, write a checkpoint so that the next start replays nothing, and close. Blocks."""

    def abandon(self) -> None:
        """Close without a flush: the log is about to be removed, once `released` returns."""

    async def released(self) -> None:
        """Return when nothing, such as a flush, uses a log that was abandoned."""


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
        yield from ended(self)
        if self._failure is not None:
            raise self._failure
