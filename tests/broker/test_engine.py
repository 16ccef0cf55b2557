"""The engine against a model that keeps the state of every offset."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.broker.subscriptions.bitmaps import BLOCK
from penstock.broker.subscriptions.cursor import Cursor
from penstock.broker.subscriptions.delayed import TICK_MS
from penstock.broker.subscriptions.engine import Engine
from penstock.broker.subscriptions.leases import HandedOut, Holder, Lease, Leases
from penstock.limits import KIB
from penstock.memory import Memory

END = 3 * BLOCK
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "acquire",
                "acquire",
                "acquire_all",
                "put_off",
                "due",
                "acknowledge",
                "every_other",
                "release",
                "below",
                "leave",
                "expire",
                "restart",
            ]
        ),
        st.integers(0, 1),
        st.integers(0, END - 1),
        st.integers(1, 40) | st.integers(1, BLOCK),
        st.booleans(),
    ),
    max_size=40,
)


def engine_of(
    cursor: Cursor | None = None,
    memory: Memory | None = None,
    moved: Callable[[], None] = lambda: None,
) -> Engine:
    return Engine(cursor or Cursor(0), moved, (memory or Memory()).subscriptions)


class Model:
    """Who holds each offset, how often it was delivered, and what is acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: set[int] = set()
        self.held: dict[int, tuple[int, float]] = {}
        self.deliveries: dict[int, int] = {}
        self.delayed: dict[int, float] = {}
        self.fresh = 0

    def acknowledge(self, start: int, end: int, step: int = 1) -> None:
        self.acknowledged.update(range(start, end, step))
        self.held = {o: held for o, held in self.held.items() if o not in self.acknowledged}
        while self.fresh in self.acknowledged and self.open_before(self.fresh) == 0:
            self.fresh += 1

    def open_before(self, end: int) -> int:
        return len(set(range(end)) - self.acknowledged)

    def take_back(self, offsets: list[int], *, counted: bool) -> None:
        for offset in offsets:
            del self.held[offset]
            self.deliveries[offset] -= 0 if counted else 1

    def returned(self) -> list[int]:
        out = self.acknowledged | self.held.keys() | self.delayed.keys()
        return [offset for offset in range(self.fresh) if offset not in out]


class Machine:
    def __init__(self) -> None:
        self.holders = [Holder("a"), Holder("b")]
        self.cursor = Cursor(0)
        self.engine = engine_of(self.cursor)
        self.model = Model()
        self.now = 0.0

    def next_of(self, size: int) -> tuple[int, int]:
        """Return what comes next, or a part of it."""
        model, first = self.model, self.engine.next_returned()
        if first is not None:
            start = next(iter(model.returned()))
            assert first.start <= start < first.end
            return first.start, min(first.end, max(first.start + size, start + 1))
        assert not model.returned()
        return self.engine.fresh, min(self.engine.fresh + size, END)

    def acquire(self, who: int, _offset: int, size: int, _flag: bool) -> None:
        """Lease what comes next; `now` counts steps, and a lease lasts three."""
        model = self.model
        start, end = self.next_of(size)
        if start >= end:
            return
        out = self.engine.acquire(self.holders[who], start, end, self.now + 3)
        open_offsets = [o for o in range(start, end) if o not in model.acknowledged]
        assert (out.open_count if out else 0) == len(open_offsets)
        for offset in open_offsets:
            model.held[offset] = (who, self.now + 3)
            model.deliveries[offset] = model.deliveries.get(offset, 0) + 1
            assert out is not None
            assert out.deliveries == model.deliveries[offset]
        model.fresh = max(model.fresh, end)

    def acquire_all(self, who: int, offset: int, size: int, gaps: bool) -> None:
        """Lease batches that were never out, some with a gap behind, or the first again."""
        model, length = self.model, 1 + offset % 9
        starts = range(self.engine.fresh, min(self.engine.fresh + size, END - length), length)
        ends = [start + length - (gaps and length > 1 and start % 2) for start in starts]
        if not starts or model.returned():
            return
        self.engine.skip([*zip(ends, [*starts[1:], ends[-1]], strict=True)])
        for end, following in zip(ends, [*starts[1:], ends[-1]], strict=True):
            model.acknowledge(end, following)
        offsets = [o for start, end in zip(starts, ends, strict=True) for o in range(start, end)]
        are_open = model.acknowledged.isdisjoint(offsets) and starts[0] >= self.engine.fresh
        assert self.engine.acquire_all(self.holders[who], starts, ends) == are_open
        if are_open:
            model.held.update(dict.fromkeys(offsets, (who, math.inf)))
            model.deliveries.update(dict.fromkeys(offsets, 1))
            model.fresh = ends[-1]
            for start, end, following in zip(starts, ends, [*starts[1:], ends[-1]], strict=True):
                found = self.engine.extent(start)
                assert found in ((start, end), (start, following)), "one batch, or its gap too"

    def put_off(self, who: int, offset: int, size: int, _flag: bool) -> None:
        """Delay what comes next, for up to three steps."""
        start, end = self.next_of(size)
        if start >= end:
            return
        due = self.now + 1 + offset % 3
        self.engine.put_off(start, end, int(due) * TICK_MS)
        opened = [o for o in range(start, end) if o not in self.model.acknowledged]
        self.model.delayed.update(dict.fromkeys(opened, due))
        self.model.fresh = max(self.model.fresh, end)
        for each in opened:
            self.model.deliveries.pop(each, None)

    def due(self, *_: object) -> None:
        while self.engine.bring_due(int(self.now) * TICK_MS):
            pass
        delayed = self.model.delayed
        self.model.delayed = {o: due for o, due in delayed.items() if due > self.now}

    def acknowledge(self, _who: int, start: int, size: int, _flag: bool) -> None:
        self.engine.acknowledge(start, start + size)
        self.model.acknowledge(start, start + size)

    def every_other(self, _who: int, start: int, size: int, flag: bool) -> None:
        self.engine.acknowledge_set(start, sum(1 << place for place in range(flag, size, 2)))
        self.model.acknowledge(start + flag, start + size, 2)

    def below(self, _who: int, offset: int, _size: int, _flag: bool) -> None:
        self.engine.acknowledge_below(offset)
        self.model.acknowledge(0, offset)

    def release(self, who: int, start: int, size: int, counted: bool) -> None:
        self.engine.release(self.holders[who], start, start + size, counted=counted)
        held = self.model.held
        mine = [o for o in range(start, start + size) if o in held and held[o][0] == who]
        self.model.take_back(mine, counted=counted)

    def leave(self, who: int, _offset: int, _size: int, counted: bool) -> None:
        self.engine.release_all(self.holders[who], counted=counted)
        mine = [o for o, (holder, _) in self.model.held.items() if holder == who]
        self.model.take_back(mine, counted=counted)

    def expire(self, *_: object) -> None:
        self.engine.expire(self.now)
        over = [o for o, (_, deadline) in self.model.held.items() if deadline <= self.now]
        self.model.take_back(over, counted=True)

    def restart(self, *_: object) -> None:
        self.engine.start_over()
        self.model.held.clear()
        self.model.delayed.clear()
        self.model.deliveries.clear()
        self.model.fresh = self.cursor.position

    def check(self) -> None:
        model = self.model
        assert self.cursor.position + self.cursor.acknowledged_above == len(model.acknowledged)
        assert self.engine.fresh == max(model.fresh, self.cursor.position)
        for who, holder in enumerate(self.holders):
            mine = {o for o, (each, _) in model.held.items() if each == who}
            assert holder.unacknowledged == len(mine)
            covered = {o for lease in holder.leases.values() for o in range(lease.start, lease.end)}
            assert covered - model.acknowledged == mine
        first = self.engine.next_returned()
        assert (first is not None) == bool(model.returned())


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_every_message_is_in_one_place(steps: list[tuple[str, int, int, int, bool]]) -> None:
    machine = Machine()
    for name, who, offset, size, flag in steps:
        machine.now += 1
        getattr(machine, name)(who, offset, size, flag)
        machine.check()


@settings(max_examples=100)
@given(
    st.lists(st.integers(1, 2 * BLOCK), max_size=12),
    st.sets(st.integers(0, 11)),
    st.integers(0, END),
    st.integers(0, END),
)
def test_leases_are_found_by_any_part(
    sizes: list[int], gone: set[int], start: int, end: int
) -> None:
    leases, holder, at = Leases(lambda _: None), Holder("a"), 0
    made = []
    for size in sizes:
        made.append(Lease(at, at + size, holder, 1, None, size))
        leases.add(made[-1])
        at += size
    for index in gone:
        if index < len(made):
            leases.remove(made[index])
    left = [lease for index, lease in enumerate(made) if index not in gone]
    expected = [each for each in left if each.start < end and each.end > start and start < end]
    assert leases.overlapping(start, end) == expected
    assert leases.oldest is (left[0] if left else None)
    assert (len(leases), len(holder.leases)) == (len(left), len(left))
    assert holder.unacknowledged == sum(lease.open_count for lease in left)


def test_a_lease_that_was_renewed_by_another_is_not_over() -> None:
    engine, holder = engine_of(), Holder("a")
    engine.acquire(holder, 0, 10, deadline=5)
    engine.release(holder, 0, 10)
    engine.acquire(holder, 0, 10, deadline=8)
    engine.expire(5)
    assert holder.unacknowledged == 10
    engine.expire(8)
    assert holder.unacknowledged == 0
    returned = engine.next_returned()
    assert returned is not None
    assert returned.deliveries == 2


def test_an_acknowledged_message_is_not_leased_and_a_message_has_one_holder() -> None:
    engine, holder = engine_of(), Holder("a")
    engine.acquire(holder, 0, 2)
    engine.acknowledge(2, 5)
    assert engine.acquire(holder, 2, 5) is None
    assert engine.fresh == 5
    engine.acquire(Holder("b"), 5, 10)
    engine.fresh = 5
    with pytest.raises(AssertionError, match="one holder"):
        engine.acquire(holder, 5, 10)


def test_what_is_due_and_out_already_does_not_come_back() -> None:
    """It was acknowledged in a transaction before its time, which was aborted."""
    engine, holder = engine_of(), Holder("a")
    engine.put_off(0, 3, TICK_MS)
    engine.hold(7, 1, 0b1)
    engine.give_back(7, (1, 2), (1, 2))
    engine.acquire(holder, 1, 2)
    assert engine.bring_due(TICK_MS)
    assert not engine.bring_due(TICK_MS)
    for start, end in ((0, 1), (2, 3)):
        returned = engine.next_returned()
        assert returned is not None
        assert (returned.start, returned.end, returned.deliveries) == (start, end, 0)
        engine.acquire(holder, start, end)
    assert engine.next_returned() is None
    assert holder.unacknowledged == 3


def test_offsets_without_messages_are_passed_over() -> None:
    engine, holder = engine_of(), Holder("a")
    engine.acquire(holder, 0, 5)
    engine.skip([(5, 8)])
    assert engine.fresh == 8
    engine.skip([(10, 12)])
    assert engine.fresh == 8
    assert list(engine.cursor.ranges) == [(5, 8), (10, 12)]


@pytest.mark.parametrize("out", [0, 2, 4, 6, 8, 9])
def test_many_gaps_are_passed_over_as_one_after_the_other(out: int) -> None:
    gaps = [(0, 1), (3, 5), (8, 9), (1020, 1030), (2000, 4000)]
    together, apart = engine_of(), engine_of()
    for engine in (together, apart):
        if out:
            engine.acquire(Holder("a"), 0, out)
    together.skip(gaps)
    for gap in gaps:
        apart.skip([gap])
    for engine in (together, apart):
        assert not engine.cursor.open_count(8, 9)
    assert list(together.cursor.ranges) == list(apart.cursor.ranges)
    assert together.cursor.position == apart.cursor.position
    assert together.fresh == apart.fresh
    assert together.leases.unacknowledged == apart.leases.unacknowledged


def test_messages_with_nothing_open_between_them_are_one_lease() -> None:
    engine, holder = engine_of(), Holder("a")
    for start in range(0, 60, 3):  # As behind the marker of each transaction.
        engine.acquire(holder, start, start + 1)
        engine.skip([(start + 1, start + 3)])
    assert len(engine.leases) == 1
    assert holder.unacknowledged == 20
    assert engine.extent(3) == (3, 4)
    engine.release_batch(holder, 30)
    assert engine.acknowledge_extents(range(0, 60, 6)) == 10
    assert holder.unacknowledged == 10
    engine.release_all(holder)
    for start in range(3, 60, 6):
        returned = engine.next_returned()
        assert returned is not None
        assert returned.extent(start) == (start, start + 1)
        assert engine.acquire(holder, start, start + 1) == HandedOut(2, 1)
    assert engine.acknowledge_extents(range(3, 60, 6)) == 10
    assert (engine.cursor.position, len(engine.leases)) == (60, 0)


def test_what_was_out_is_not_leased_in_one_step() -> None:
    engine, holder = engine_of(), Holder("a")
    assert engine.acquire_all(holder, [0, 1, 5], [1, 5, 2000])
    assert not engine.acquire_all(holder, [0, 1], [1, 5])
    assert [(each.start, each.end) for each in engine.leases] == [(0, 5), (5, 2000)]
    assert [engine.extent(start) for start in (0, 1, 5, 6)] == [(0, 1), (1, 5), (5, 2000), None]
    engine.acknowledge(2001, 2002)
    assert not engine.acquire_all(holder, [2000, 2001], [2001, 2002])
    assert engine.acquire_all(holder, [2000, 2002], [2001, 2003])
    engine.hold(7, 2000, 0b1)
    assert not engine.acquire_all(holder, [2003, 2004], [2004, 2005])
    assert holder.unacknowledged == 2001


def test_what_is_open_or_far_between_messages_is_no_part_of_a_lease() -> None:
    engine, holder = engine_of(), Holder("a")
    engine.acquire(holder, 0, 1)
    engine.cursor.acknowledge(2, 3)
    engine.acquire(holder, 3, 4)
    assert len(engine.leases) == 2
    engine.skip([(4, 5000)])
    engine.acquire(holder, 5000, 5001)
    assert [(each.start, each.end) for each in engine.leases] == [(0, 1), (3, 4), (5000, 5001)]


def test_ranges_are_acknowledged_by_their_beginnings_wherever_they_are() -> None:
    moves: list[int] = []
    engine = engine_of(moved=lambda: moves.append(0))
    holder = Holder("a")
    for start in range(0, 50, 10):
        # With times of their own they are leases of their own.
        engine.acquire(holder, start, start + 10, deadline=start)
    engine.release(holder, 40, 50)
    engine.forget(leases_max=2)
    # Forgotten, leased, came back; nothing begins at 25.
    assert engine.acknowledge_extents([10, 30, 40, 25, 0]) == 3
    assert list(engine.cursor.ranges) == [(10, 20), (30, 50)]
    assert holder.unacknowledged == 10
    assert moves == [0]
    assert engine.next_returned() is None
    assert engine.acknowledge_extents([25, 0]) == 0
    assert engine.acknowledge_extents([0, 20]) == 2
    assert engine.cursor.position == 50
    assert not holder.unacknowledged


# The node's memory


def fill(engine: Engine, holders: list[Holder], most: int = 10_000) -> int:
    """Hand out messages to holders in turns, one lease each, as long as there is room."""
    for number in range(most):
        if not engine.has_room():
            return number
        engine.acquire(holders[number % 2], engine.fresh, engine.fresh + 1)
    pytest.fail("there is always room")


def test_what_is_out_has_a_share_of_the_memory() -> None:
    memory = Memory(8 * 300 * KIB)
    first, second = engine_of(memory=memory), engine_of(memory=memory)
    hogs = [Holder("a"), Holder("b")]
    tracemalloc.start()
    out = fill(first, hogs)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert memory.subscriptions.used == pytest.approx(200 * KIB, abs=5 * KIB)
    assert memory.used == memory.subscriptions.used
    assert size < 1.1 * memory.subscriptions.used, "it is not counted low"
    assert 0 < fill(second, [Holder("c"), Holder("d")]) < out, "some is left for the next one"
    newcomer = Holder("e")
    assert first.has_little(newcomer)
    assert not first.has_little(hogs[0])


def test_who_waits_for_memory_is_woken_when_others_give_back() -> None:
    memory = Memory(8 * 300 * KIB)
    first, second = engine_of(memory=memory), engine_of(memory=memory)
    out = fill(first, [Holder("a"), Holder("b")])
    fill(second, [Holder("c"), Holder("d")])
    woken: list[str] = []
    first.wait_for_room(lambda: woken.append("first"))
    second.wait_for_room(lambda: woken.append("second"))
    first.acknowledge(0, out // 2)
    first.count()
    assert sorted(woken) == ["first", "second"]
    assert second.has_room()
    first.close()
    second.start_over()
    assert memory.used == 0


def test_without_memory_whole_leases_come_back() -> None:
    memory = Memory(8 * 300 * KIB)
    engine, holder = engine_of(memory=memory), Holder("a")
    for offset in range(200):
        engine.acquire(holder, offset, offset + 1)
    engine.release_batch(holder, 10)
    assert holder.unacknowledged == 199
    memory.subscriptions.take(300 * KIB)
    engine.release_batch(holder, 100)
    assert holder.unacknowledged == 10
    assert engine.acknowledge_extents(range(200)) == 200


def test_a_cursor_of_holes_gets_them_filled_before_it_grows() -> None:
    memory = Memory(8 * 300 * KIB)
    cursor, holder = Cursor(0), Holder("a")
    for number in range(100):
        cursor.acknowledge(number * BLOCK + 1, number * BLOCK + 2)
    memory.subscriptions.take(300 * KIB)
    engine = engine_of(cursor, memory)
    assert memory.subscriptions.used > 300 * KIB + 100 * 256
    assert not engine.has_room()
    assert engine.has_little(holder), "what is open in between is to be had"
    assert not engine.may_acknowledge(500 * BLOCK)
    engine.fresh = 100 * BLOCK
    assert not engine.has_little(holder)
    assert engine.may_acknowledge(99 * BLOCK), "it was delivered"
    engine.acknowledge(0, 99 * BLOCK)
    assert engine.has_little(holder)
