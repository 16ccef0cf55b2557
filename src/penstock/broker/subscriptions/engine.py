"""The state of one subscription on one partition: where each message is.

A message is acknowledged (below or in the cursor), out with a holder (in a lease), back to be
delivered again (in a returned range), delayed until a time of its own, or was never out (from
`fresh` on). What is delayed comes back when it is due. Where the consumers share by keys, what came
back, or was passed over, waits for the consumer of its key (in a waiting range). One that a
transaction acknowledged is pending: wherever it is, it is not counted there, and not handed out
before the transaction was aborted. What is pushed to consumers and what they pull share this state;
who gets what next is decided above it.

What all of it takes is on the node's account for subscriptions. Where that is full, no more is
handed out before something is acknowledged or given up.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from penstock import limits
from penstock.broker.subscriptions.batch_run import UNKNOWN_BEGINS, cut_into_spans
from penstock.broker.subscriptions.bitmaps import BLOCK, span
from penstock.broker.subscriptions.boundaries import Boundaries
from penstock.broker.subscriptions.delayed import Delayed
from penstock.broker.subscriptions.leases import HandedOut, Lease, Leases
from penstock.broker.subscriptions.pending import Pending
from penstock.broker.subscriptions.returned import Returned, ReturnedRanges
from penstock.broker.subscriptions.slots import NO_SLOT
from penstock.broker.subscriptions.waiting import WaitingRanges
from penstock.memory import Holding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from penstock.broker.subscriptions.batch_run import BatchRun
    from penstock.broker.subscriptions.cursor import Cursor
    from penstock.broker.subscriptions.leases import Holder
    from penstock.memory import SharedAccount

_DUE_TOGETHER: Final = 128
"""Runs that come back at once because they are due."""
_READ_TOGETHER: Final = 16
"""Returned ranges in one block of offsets with which one read costs less than many."""
_DUE_AHEAD: Final = 8_192
"""Returned ranges with which no more come back because they are due, until most of them are out."""
_DUE_BEHIND: Final = 1_024


class Engine:
    """All methods belong to the event loop's thread. `moved` is called when the cursor changed."""

    def __init__(self, cursor: Cursor, moved: Callable[[], None], account: SharedAccount) -> None:
        self.cursor = cursor
        self.waiting = WaitingRanges()
        self.leases = Leases(self.waiting.freed)
        self.fresh = cursor.position
        """The first offset that was never out, or was taken back by `start_over`."""
        self._returned = ReturnedRanges()
        # Of what is out and was forgotten.
        self._boundaries = Boundaries()
        self.delayed = Delayed()
        """Only what `put_off` adds; of it anything may be acknowledged meanwhile, or given back."""
        self._brings_due = False
        self.pending = Pending()
        self._moved = moved
        self.account = account
        self._held = Holding(account)
        self._holes_end = cursor.last_block_end
        """Below lies what was acknowledged when nothing was out."""
        self.count()

    def count(self) -> None:
        """Have the node's account say about what is taken; to be called often enough."""
        self._held.follow(
            self.leases.used_bytes
            + self._returned.used_bytes
            + self.waiting.used_bytes
            + self._boundaries.used_bytes
            + self.pending.used_bytes
            + self.delayed.used_bytes
            + self.cursor.used_bytes
        )

    def has_room(self) -> bool:
        """Whether the node has memory for more that is out."""
        self.count()
        return self.account.room(self._held.size) > 0

    def has_little(self, holder: Holder) -> bool:
        """Whether a holder has so little that it gets more where there is no room for others.

        Never where that makes the cursor larger, which nothing but what is out already can make
        smaller; what lies open between acknowledged messages doesn't.
        """
        if len(holder.leases) >= limits.HOLDER_LEAST_LEASES:
            return False
        return (
            self.cursor.used_bytes < limits.CURSOR_LEAST_BYTES
            or self.fresh < self._holes_end
            or len(self._returned) > 0
            or len(self.waiting) > 0
        )

    def wait_for_room(self, wake: Callable[[], None]) -> None:
        """Have `wake` called once another subscription has given memory back."""
        self.account.wait(self._held, wake)

    def stop_waiting(self) -> None:
        self.account.forget(self._held)

    def may_acknowledge(self, start: int) -> bool:
        """Whether the batch at an offset was out, or there is memory to remember it even so."""
        if start < self.fresh or self.cursor.used_bytes < limits.CURSOR_LEAST_BYTES:
            return True
        return self.has_room()

    def extent(self, offset: int) -> tuple[int, int] | None:
        """Return the range that was handed out as one and begins at `offset`, if that is known."""
        lease = self.leases.find(offset)
        found = None if lease is None else lease.extent(offset)
        return self._without_lease(offset) if found is None else found

    def open_count(self, start: int, end: int) -> int:
        """Return how many messages of a range are neither acknowledged nor pending."""
        count = self.cursor.open_count(start, end)
        if count and self.pending.blocks:
            count -= self.pending.open_count(self.cursor, start, end)
        return count

    def open_mask(self, start: int, end: int) -> int:
        """Return which of a batch's messages are neither: bit i stands for offset `start` + i."""
        mask = self.cursor.open_mask(start, end)
        return mask & ~self.pending.mask(start, end) if self.pending.blocks else mask

    def has_returned(self, start: int) -> bool:
        """Whether a range that begins at an offset came back."""
        return self._returned.get(start) is not None

    def has_returned_many(self, near: int) -> bool:
        """Whether so much came back around an offset that it is read together."""
        return self._returned.count_near(near) >= _READ_TOGETHER

    def next_returned(self) -> Returned | None:
        """Return what is to be delivered again first; what was acknowledged meanwhile is not."""
        while (first := self._returned.first) is not None:
            if self.open_count(first.start, first.end):
                return first
            self._returned.pop_first()
        return None

    def next_waiting(self, slot: int) -> Returned | None:
        """Return what of a slot of keys goes out next, of what waits; what was acknowledged
        meanwhile does not.
        """
        while (first := self.waiting.first(slot)) is not None:
            if self.open_count(first.start, first.end):
                return first
            self.waiting.pop_first(slot)
        return None

    def put_aside(self, start: int, end: int, slot: int) -> None:
        """Have a range wait, which comes next or came back, for the consumer of its slot."""
        deliveries = self._withdraw(start, end, slot)
        if self.open_count(start, end):
            self.waiting.add(Returned(start, end, deliveries, slot=slot))

    def acquire(
        self,
        holder: Holder,
        start: int,
        end: int,
        deadline: float | None = None,
        left_out: int = 0,
        slot: int = NO_SLOT,
    ) -> HandedOut | None:
        """Lease to a holder what is open of a range; None where nothing is.

        What it is not to see of it is acknowledged: offset `start` + i where bit i of `left_out` is
        set.

        The range is what comes next: of what waits in its slot, or else of what came back, the
        beginning of the first range, which may be split; or what follows at `fresh`.
        """
        deliveries = self._withdraw(start, end, slot)
        if left_out:
            self.cursor.acknowledge_set(start, left_out & self.open_mask(start, end))
            self._has_moved()
        open_count = self.open_count(start, end)
        if not open_count:
            return None
        self._follow(start)
        self.leases.hand_out(start, end, holder, deliveries + 1, deadline, open_count, slot)
        return HandedOut(deliveries + 1, open_count)

    def acquire_all(self, holder: Holder, starts: Sequence[int], ends: Sequence[int]) -> bool:
        """Lease to a holder batches that follow one another, each whole, in one step; False, and
        nothing is done, where some were out before or are not open.
        """
        first, end = starts[0], ends[-1]
        if first < self.fresh or self.pending.blocks:
            return False
        if self.cursor.open_count(first, end) != sum(ends) - sum(starts):
            return False
        self.fresh = end
        for start, end, begins, size in cut_into_spans(starts, ends):
            self._follow(start)
            self.leases.hand_out(start, end, holder, 1, None, size, begins=begins)
        return True

    def put_off(self, start: int, end: int, due_ms: int) -> None:
        """Keep a range from everybody until a time. As in `acquire`, it is what comes next."""
        self._withdraw(start, end, NO_SLOT)
        if self.open_count(start, end):
            self.delayed.add(due_ms, start, end)

    def may_put_off(self) -> bool:
        """Whether there is room for more that is delayed."""
        count = len(self.delayed)
        if count < limits.DELAYED_LEAST_RUNS:
            return True
        return count < limits.DELAYED_RUNS and self.has_room()

    def bring_due(self, now_ms: int) -> bool:
        """Have some of what is due come back, to be delivered for the first time; return whether
        there was any: more is to be brought before something is handed out, so that the log is
        read in its order.

        What somebody holds has come back another way.
        """
        most = _DUE_AHEAD if self._brings_due else _DUE_BEHIND
        self._brings_due = False
        if not self.delayed or len(self._returned) >= most:
            return False
        due = self.delayed.take_due(now_ms, _DUE_TOGETHER)
        self._brings_due = bool(due)
        for start, end in due:
            self._return_between(start, end, self.leases.overlapping(start, end), deliveries=0)
        return self._brings_due

    def forget(self, leases_max: int) -> None:
        """Keep so many leases, and of older ones only where batches begin.

        Only where one holder has all that is out, so that leases are as old as their offsets are
        low.
        """
        while len(self.leases) > leases_max:
            oldest = self.leases.oldest
            assert oldest is not None, "there are leases"
            self.leases.remove(oldest)
            if oldest.start >= self._boundaries.end:  # Else it came back from a transaction.
                self._boundaries.add(oldest.start, oldest.end, oldest.begins)

    def forget_extents(self) -> None:
        """Forget where what is out begins, as far as one holder has all of it."""
        self.forget(0)
        self._boundaries.clear()
        self.count()

    def acknowledge_extents(self, starts: Iterable[int]) -> int:
        """Mark ranges that were handed out, each by its beginning, whoever holds them.

        Returns how many were marked: all, or those before the first of which the end is not known.
        """
        leases, cursor = self.leases, self.cursor
        mark = self._mark if self.pending.blocks else cursor.acknowledge
        marked = 0
        for start in starts:
            lease = leases.find(start)
            extent = None if lease is None else lease.extent(start)
            if lease is not None and extent is not None:
                leases.settle(lease, mark(*extent))
            else:
                # What came back is nobody's, and so is what has no lease any more.
                extent = self._without_lease(start)
                if extent is None:
                    break
                cursor.acknowledge(*extent)
            marked += 1
        if marked:
            self._has_moved()
        return marked

    def acknowledge(self, start: int, end: int) -> None:
        """Mark messages as acknowledged, whoever holds them."""
        held = 0
        for lease in self.leases.overlapping(start, end):
            low, high = max(start, lease.start), min(end, lease.end)
            held += high - low
            self.leases.settle(lease, self._mark(low, high))
        if held < end - start:
            self.cursor.acknowledge(start, end)
        self._has_moved()

    def acknowledge_set(self, start: int, closed: int) -> None:
        """Mark of the offsets from `start` on those whose bit is set, whoever holds them."""
        for lease in self.leases.overlapping(start, start + closed.bit_length()):
            low, high = max(start, lease.start), lease.end
            held = closed >> (low - start) & span(0, high - low)
            self.leases.settle(lease, self._mark_set(low, held))
            closed ^= held << (low - start)
        self.cursor.acknowledge_set(start, closed)
        self._has_moved()

    def acknowledge_below(self, end: int) -> None:
        """Mark every message below an offset as acknowledged."""
        if end > self.cursor.position:
            self.acknowledge(self.cursor.position, end)

    def hold(self, producer_id: int, start: int, closed: int) -> None:
        """Note that a transaction acknowledged the offset `start` + i for each bit i that is set.

        All of them are open, and pending in no other transaction.
        """
        end = start + closed.bit_length()
        closed &= ~self.pending.mask(start, end)
        for lease in self.leases.overlapping(start, end):
            low, high = max(start, lease.start), min(end, lease.end)
            self.leases.settle(lease, (closed >> (low - start) & span(0, high - low)).bit_count())
        self.pending.add(producer_id, start, closed)

    def committing(self, producer_id: int) -> Iterator[None]:
        """Acknowledge what a transaction has, a block in each step."""
        for number, bits in sorted(self.pending.blocks_of(producer_id).items()):
            start = number * BLOCK
            self.pending.remove(producer_id, start, start + BLOCK)
            self.cursor.acknowledge_set(start, bits)
            self._has_moved()
            yield
        self.count()

    def give_back(self, producer_id: int, run: tuple[int, int], batches: tuple[int, int]) -> None:
        """Have a run of what an aborted transaction has delivered again, whoever held it before.

        `batches` are where the first of its batches begins and the last one ends: a batch goes out
        as a whole, with what is open of it.
        """
        self.pending.remove(producer_id, *run)
        start, end = batches[0], min(batches[1], self.fresh)
        for lease in self.leases.overlapping(start, end):
            self._take_back(lease, max(start, lease.start), min(end, lease.end), counted=True)
        self._return_between(start, end, (), deliveries=1)
        self.count()

    def _return_between(
        self, start: int, end: int, leases: Iterable[Lease], deliveries: int
    ) -> None:
        """Have what is open of whole batches come back, but for what some leases have, and what
        came back before.
        """
        there: list[BatchRun] = [*leases, *self._returned.overlapping(start, end)]
        there += self.waiting.overlapping(start, end)
        for run in sorted(there, key=attrgetter("start")):
            self._return_unheld(start, run.start, deliveries)
            start = run.end
        self._return_unheld(start, end, deliveries)

    def _return_unheld(self, start: int, end: int, deliveries: int) -> None:
        if start < end and self.open_count(start, end):
            begins = 1 if end - start == 1 else UNKNOWN_BEGINS
            self._returned.add(Returned(start, end, deliveries, begins))

    def skip(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Pass over ranges of offsets, ascending, at which no message is."""
        if ranges[0][0] < self.fresh:
            for each in ranges:
                self.acknowledge(*each)
        else:
            # Nobody holds what was never out.
            self.cursor.acknowledge_all(ranges)
            self._has_moved()
        for start, end in ranges:
            if start <= self.fresh < end:
                self.fresh = end

    def pass_over(self, end: int) -> None:
        """Go on at `end`: nothing that was never out is open before."""
        assert not self.open_count(self.fresh, end), "what is open is handed out"
        self.fresh = max(self.fresh, end)

    def release(self, holder: Holder, start: int, end: int, *, counted: bool = True) -> None:
        """Take back what a holder has of a range, to be delivered again.

        `counted` is whether that delivery counts.
        """
        for lease in self.leases.overlapping(start, end):
            if lease.holder is holder:
                self._take_back(lease, max(start, lease.start), min(end, lease.end), counted)
        self.count()

    def release_batch(self, holder: Holder, start: int) -> None:
        """Take back the batch that begins at an offset, if the holder has it.

        Where there is no room for the pieces, its whole lease comes back: what is delivered once
        more than was asked for takes less than what has to be told apart.
        """
        lease = self.leases.find(start)
        extent = None if lease is None or lease.holder is not holder else lease.extent(start)
        if lease is not None and extent is not None:
            whole = lease.start, lease.end
            self._take_back(lease, *(extent if self.has_room() else whole), counted=True)

    def release_all(self, holder: Holder, *, counted: bool = True) -> None:
        """Take back all that a holder has."""
        for _ in self.releasing(holder, counted=counted):
            pass
        assert not holder.unacknowledged, "who holds no lease holds no message"

    def releasing(self, holder: Holder, *, counted: bool = True) -> Iterator[None]:
        """Take back all that a holder has now, a lease in each step."""
        for lease in tuple(holder.leases.values()):
            if holder.leases.get(lease.start) is lease:
                self._take_back(lease, lease.start, lease.end, counted)
            yield
        self.count()

    def expire(self, now: float) -> None:
        """Take back what was held for too long."""
        for lease in self.leases.over(now):
            self._take_back(lease, lease.start, lease.end, counted=True)

    def start_over(self) -> None:
        """Take everything back: all that is open is to be delivered in order, as if for the first
        time.
        """
        self.leases.clear()
        self._boundaries.clear()
        self._returned.clear()
        self.delayed.clear()
        self.waiting.clear()
        self.fresh = self.cursor.position
        self._holes_end = self.cursor.last_block_end
        self.count()

    def reset(self, position: int) -> None:
        """Move the cursor, and start over there. Nothing says that it moved."""
        self.cursor.reset(position)
        self.start_over()

    def close(self) -> None:
        """Nobody asks any more; what is taken is given back, and nobody is told of what moves."""
        self._held.set(0)
        self._moved = lambda: None  # Who was told knows the engine: a cycle for the collector.

    def _follow(self, start: int) -> None:
        """Have the newest lease reach up to what follows where nothing between is open: what is
        behind a gap, as behind the marker of each transaction, is then no lease of its own.
        """
        lease = self.leases.newest
        if lease is None or lease.end >= start:
            return
        is_near = lease.start // BLOCK == start // BLOCK
        if is_near and not self.cursor.open_count(lease.end, start):
            lease.extend(lease.end, start)

    def _without_lease(self, start: int) -> tuple[int, int] | None:
        returned = self._returned.find(start) or self.waiting.find(start)
        found = None if returned is None else returned.extent(start)
        return self._boundaries.get(start) if found is None else found

    def _mark(self, start: int, end: int) -> int:
        """Acknowledge a range; return how many of its messages were counted where they were."""
        pending = self.pending.open_count(self.cursor, start, end) if self.pending.blocks else 0
        return self.cursor.acknowledge(start, end) - pending

    def _mark_set(self, start: int, closed: int) -> int:
        pending = 0
        if self.pending.blocks:
            end = start + closed.bit_length()
            pending = closed & self.cursor.open_mask(start, end) & self.pending.mask(start, end)
        return self.cursor.acknowledge_set(start, closed) - pending.bit_count()

    def _has_moved(self) -> None:
        position = self.cursor.position
        self.fresh = max(self.fresh, position)
        self._boundaries.drop_below(position)
        self._moved()

    def _withdraw(self, start: int, end: int, slot: int) -> int:
        """Take a range out of where it is; return how often it was delivered."""
        if end > self.fresh:
            self.fresh = end
            return 0
        waits = slot != NO_SLOT and self.waiting.begins_with(start, slot)
        first = self.waiting.pop_first(slot, end) if waits else self._returned.pop_first(end)
        assert first.start <= start < end <= first.end, "what came back first goes out first"
        assert not self.open_count(first.start, start), "nothing is passed over"
        return first.deliveries

    def _take_back(self, lease: Lease, start: int, end: int, counted: bool) -> None:
        if not self.open_count(start, end):
            return
        self.leases.remove(lease)
        for low, high in ((lease.start, start), (end, lease.end)):
            open_count = self.open_count(low, high)
            if open_count:
                rest = (lease.deliveries, lease.deadline, open_count, lease.begins_of(low, high))
                self.leases.add(Lease(low, high, lease.holder, *rest, lease.slot))
        deliveries = lease.deliveries if counted else lease.deliveries - 1
        back = Returned(start, end, deliveries, lease.begins_of(start, end), lease.slot)
        (self._returned if lease.slot == NO_SLOT else self.waiting).add(back)
