"""What transactions acknowledged is nobody's before they end, and nothing is lost by their ends."""

from __future__ import annotations

from itertools import chain

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.broker.subscriptions.bitmaps import BLOCK
from penstock.broker.subscriptions.cursor import Cursor
from penstock.broker.subscriptions.engine import Engine
from penstock.broker.subscriptions.leases import Holder
from penstock.broker.subscriptions.pending import Pending
from penstock.memory import Memory

SIZE = 3
"""Messages in a batch; blocks end inside of batches."""
FIRST = BLOCK - 20
COUNT = 40
KINDS = """
    hand_out hand_out hand_out acknowledge part hold hold commit abort release leave restart forget
    through
"""
STEPS = st.lists(
    st.tuples(
        st.sampled_from(KINDS.split()),
        st.integers(0, 2),
        st.integers(0, 4) | st.integers(0, COUNT - 1),
        st.integers(1, (1 << SIZE) - 1),
    ),
    max_size=60,
)


def batch(number: int) -> tuple[int, int]:
    return FIRST + number * SIZE, FIRST + (number + 1) * SIZE


def bits_of(closed: int) -> list[int]:
    return [bit for bit in range(closed.bit_length()) if closed >> bit & 1]


class Machine:
    """An engine whose batches are handed out as a push does it, and a model of their messages."""

    def __init__(self) -> None:
        self.engine = Engine(Cursor(FIRST), lambda: None, Memory().subscriptions)
        self.holders = [Holder(name) for name in "abc"]
        self.acknowledged: set[int] = set()
        self.pending: dict[int, set[int]] = {number: set() for number in range(3)}

    @property
    def closed(self) -> set[int]:
        return self.acknowledged.union(*self.pending.values())

    def hand_out(self, who: int, *_: object) -> bool:
        """Give out what comes next; False at the end."""
        returned = self.engine.next_returned()
        start = self.engine.fresh if returned is None else returned.start
        while returned is not None and not self.engine.open_count(start, start + SIZE):
            start += SIZE  # What lies between is not open, so it is no batch of its own.
        number = (start - FIRST) // SIZE
        if number >= COUNT:
            return False
        start, end = batch(number)
        open_offsets = {offset for offset in range(start, end) if offset not in self.closed}
        mask = self.engine.open_mask(start, end)
        assert {start + bit for bit in bits_of(mask)} == open_offsets
        given_out = self.engine.acquire(self.holders[who], start, end)
        assert (given_out.open_count if given_out else 0) == len(open_offsets)
        return True

    def acknowledge(self, _who: int, number: int, _closed: int) -> None:
        if self.engine.acknowledge_extents([batch(number)[0]]):
            self.acknowledged.update(range(*batch(number)))

    def part(self, _who: int, number: int, closed: int) -> None:
        start, _ = batch(number)
        self.engine.acknowledge_set(start, closed)
        self.acknowledged.update(start + bit for bit in bits_of(closed))

    def hold(self, who: int, number: int, closed: int) -> None:
        start, _ = batch(number)
        wanted = {start + bit for bit in bits_of(closed)} - self.closed
        if wanted:
            self.engine.hold(who, start, sum(1 << (offset - start) for offset in wanted))
            self.pending[who] |= wanted

    def through(self, who: int, number: int, _closed: int) -> None:
        """Hold everything up to a batch, where no other transaction has a part of it."""
        wanted = set(range(FIRST, batch(number)[1])) - self.acknowledged
        others = [mine for each, mine in self.pending.items() if each != who]
        end = batch(number)[1]
        for start in (FIRST, *batch(number)):
            assert self.engine.pending.has_others(who, start, end) == any(
                start <= offset < end for offset in chain(*others)
            )
        if wanted and not any(wanted & mine for mine in others):
            self.engine.hold(who, FIRST, sum(1 << (offset - FIRST) for offset in wanted))
            self.pending[who] |= wanted
            self.engine.pending.goes_on_through(who, 0, end)

    def commit(self, who: int, *_: object) -> None:
        for _step in self.engine.committing(who):
            pass
        self.acknowledged |= self.pending[who]
        self.pending[who].clear()

    def abort(self, who: int, *_: object) -> None:
        for low, high in list(self.engine.pending.runs_of(who)):
            whole = low - (low - FIRST) % SIZE, high + (FIRST - high) % SIZE
            self.engine.give_back(who, (low, high), whole)
        self.pending[who].clear()

    def release(self, who: int, number: int, _closed: int) -> None:
        self.engine.release_batch(self.holders[who], batch(number)[0])

    def leave(self, who: int, *_: object) -> None:
        self.engine.release_all(self.holders[who], counted=False)

    def restart(self, *_: object) -> None:
        self.engine.start_over()

    def forget(self, who: int, *_: object) -> None:
        if all(not each.leases for each in self.holders if each is not self.holders[who]):
            self.engine.forget(2)

    def check(self) -> None:
        for holder in self.holders:
            covered = {o for run in holder.leases.values() for o in range(run.start, run.end)}
            assert holder.unacknowledged == len(covered - self.closed)
        for who, mine in self.pending.items():
            through = self.engine.pending.through(who)
            assert mine | self.acknowledged >= {*range(FIRST, through)}
            found = {o for run in self.engine.pending.runs_of(who) for o in range(*run)}
            assert found == mine

    def finish(self) -> None:
        """End everything, and have what is left delivered and acknowledged."""
        for who in self.pending:
            (self.abort if who else self.commit)(who)
        assert not self.engine.pending.blocks
        assert len(self.engine.pending) == 0
        for holder in self.holders:
            self.engine.release_all(holder)
        while self.hand_out(0):
            for lease in list(self.holders[0].leases.values()):
                self.engine.acknowledge(lease.start, lease.end)
                self.acknowledged.update(range(lease.start, lease.end))


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_nothing_is_lost_or_handed_out_while_it_is_pending(
    steps: list[tuple[str, int, int, int]],
) -> None:
    machine = Machine()
    for name, who, number, closed in steps:
        getattr(machine, name)(who, number, closed)
        machine.check()
    forgotten = "forget" in {name for name, *_ in steps}
    machine.finish()
    if not forgotten:  # What has no lease any more is out until everything starts over.
        assert machine.engine.cursor.position == batch(COUNT - 1)[1]


def test_what_lies_beyond_an_end_is_cut_off() -> None:
    pending = Pending()
    pending.add(1, 10, 0b111)
    pending.add(2, BLOCK + 5, 0b1)
    pending.cut_off(12)
    assert list(pending.runs_of(1)) == [(10, 12)]
    assert list(pending.runs_of(2)) == []
    assert len(pending) == 1


def test_what_is_acknowledged_while_it_is_pending_is_counted_once() -> None:
    machine = Machine()
    for number in range(2):
        machine.hand_out(0)
        machine.hold(1, number, 0b010)
    machine.acknowledge(0, 0, 0)
    machine.check()
    machine.part(0, 1, 0b011)
    machine.check()
    machine.abort(1)
    machine.check()
    machine.finish()
    assert machine.engine.cursor.position == batch(COUNT - 1)[1]


def test_what_came_back_and_went_out_again_may_be_forgotten() -> None:
    machine = Machine()
    for _ in range(4):
        machine.hand_out(0)
    machine.hold(1, 1, 0b111)
    machine.abort(1)
    machine.hand_out(0)
    machine.engine.forget(0)
    machine.check()
    assert machine.engine.extent(batch(2)[0]) == batch(2)
    assert machine.engine.extent(batch(1)[0]) in {None, batch(1)}
