"""What a partition knows of its compaction: how far it has come, and how its log is rewritten."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock import limits
from penstock.broker.compaction.due import Known
from penstock.broker.compaction.view import CompactedView
from penstock.log.errors import OffsetOutOfRangeError
from penstock.memory import Holding
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.broker.compaction.policy import CompactionPolicy
    from penstock.broker.reading.conversion_cache import ConversionCache
    from penstock.log import Log
    from penstock.log.interface import Rewriting, StoredSegment

OWNER: Final = "compaction"
"""Whose state it is in a checkpoint."""
_VIEW: Final = "compacted-view"
"""And that of the view."""

_STATE: Final = struct.Struct(">Bqqq")
_VERSION: Final = 1


def read_state(state: bytes) -> tuple[Known, int]:
    """Return what a checkpoint says, and the last time of a request that was heard."""
    is_known = len(state) == _STATE.size and state[0] == _VERSION
    _, cleaned_to, asked_to, answered_ms = _STATE.unpack(state) if is_known else (0,) * 4
    return Known(cleaned_to, asked_to), answered_ms


class _Forgetting(NamedTuple):
    """All below an offset was compacted by a time."""

    since: float
    end: int


class PartitionCompaction:
    """It lies in the checkpoints of the log. Where it is lost, all is compacted again."""

    def __init__(self, conversions: ConversionCache) -> None:
        self.known = Known(0, 0)
        self.view = CompactedView()
        """What Pulsar's compacted view of the log leaves out."""
        self._held = Holding(conversions.memory.metadata)
        self._answered_ms = 0
        """The last time at which somebody asked, of those that have been heard."""
        self._forgetting: _Forgetting | None = None
        self._rolled_ms = 0
        """When the last segment was closed for the age of what was in it."""
        self._conversions = conversions
        self._log: Log | None = None

    def open(self, log: Log) -> None:
        """The log of the partition is open, or open anew."""
        self._log = log
        state, _ = log.register_state(OWNER, self.snapshot)
        self.known, self._answered_ms = read_state(state)
        state, _ = log.register_state(_VIEW, lambda: self.view.state)
        view = CompactedView(state)
        # What the disk has lost of the log gets its offsets again.
        self._show(view if view.end <= log.end_offset else CompactedView())

    def snapshot(self) -> bytes:
        """Return the state for the log's next checkpoint."""
        return _STATE.pack(_VERSION, *self.known, self._answered_ms)

    def cleaned(self, end: int) -> None:
        """All below an offset was compacted, as far as keys are known from there."""
        self.known = self.known._replace(cleaned_to=max(end, self.known.cleaned_to))
        self._opened.keep_states()

    def forgettable_to(self, now: float) -> int:
        """Return the offset below which nobody asks any more which transactions were aborted: all
        was compacted below it for so long. To be asked now and again; `now` is in seconds.
        """
        waiting, cleaned_to = self._forgetting, self.known.cleaned_to
        if waiting is not None and now - waiting.since < limits.ABORTED_TOLD_SECONDS:
            return 0
        self._forgetting = _Forgetting(now, cleaned_to)
        return 0 if waiting is None else waiting.end

    async def show(self, view: CompactedView) -> None:
        """Have another view, also after a crash. Raises LogError."""
        self._show(view)
        self._opened.keep_states()
        await self._opened.finish()

    def close(self) -> None:
        """The topic is gone: give back what is held."""
        self._held.set(0)

    async def prepare(self, policy: CompactionPolicy, now_ms: int) -> None:
        """Have the last segment closed where what is in it is to be compacted. Raises LogError."""
        log = self._opened
        if policy.requested_ms > self._answered_ms:
            await log.roll()
            self._answered_ms = policy.requested_ms
            self.known = self.known._replace(asked_to=log.flushed_offset)
            log.keep_states()
        elif policy.is_on and now_ms - self._rolled_ms > policy.max_lag_ms:
            # What came since has waited for less, or says of itself that it is older.
            start = log.full_segment_ends[-1] if log.full_segment_ends else log.start_offset
            if await self._is_late(start, policy, now_ms):
                await log.roll()
                self._rolled_ms = now_ms

    @property
    def has_more(self) -> bool:
        """Whether a segment was filled since the log was compacted: else there is nothing to do,
        and what its segments hold need not be read.
        """
        ends = self._opened.full_segment_ends
        return bool(ends) and ends[-1] > self.known.cleaned_to

    async def is_late(self, policy: CompactionPolicy, now_ms: int) -> bool:
        """Whether the first of what is not compacted has waited for too long. Raises LogError."""
        start = max(self.known.cleaned_to, self._opened.start_offset)
        return await self._is_late(start, policy, now_ms)

    async def segments(self) -> list[StoredSegment]:
        """Return the segments that hold something and are to stay, the oldest first.

        Raises LogError.
        """
        pace = Pace()
        found: list[StoredSegment] = []
        async for segment in self._opened.stored_segments():
            if segment.end_offset > self._opened.start_offset:
                found.append(segment)
            if pace.is_over():
                await pace.others()
        return found

    async def rewriting(self, start: int, end: int) -> Rewriting | None:
        """Return how full segments are written anew, as `Log` says. Raises LogError."""
        return await self._opened.rewriting(start, end)

    async def replace(self, rewriting: Rewriting) -> bool:
        """Put what was written anew in its place, as `Log` says. Raises LogError."""
        is_replaced = await self._opened.replace(rewriting)
        if is_replaced:
            # Whoever converts now hands it out and sees by `Log.replacements` not to keep it.
            self._conversions.forget(self._opened)
        return is_replaced

    def _show(self, view: CompactedView) -> None:
        self.view = view
        self._held.set(len(view.state))

    async def _is_late(self, offset: int, policy: CompactionPolicy, now_ms: int) -> bool:
        if policy.max_lag_ms >= now_ms or offset >= self._opened.flushed_offset:
            return False
        try:
            first = await self._opened.batch_at(offset)
        except OffsetOutOfRangeError:
            return False  # It was given up this moment.
        return first is not None and first.base_timestamp < now_ms - policy.max_lag_ms

    @property
    def _opened(self) -> Log:
        assert self._log is not None, "only an open log is compacted"
        return self._log
