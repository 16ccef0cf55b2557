"""The engine against a model that keeps the state of every offset."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.broker.subscriptions.bitmaps import BLOCK
from penstock.broker.subscriptions.cursor import Cursor
from penstock.broker.subscriptions.engine import Engine
from penstock.broker.subscriptions.leases import Holder, Lease, Leases

END = 3 * BLOCK
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "acquire",
                "acquire",
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


class Model:
    """Who holds each offset, how often it was delivered, and what is acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: set[int] = set()
        self.held: dict[int, tuple[int, float]] = {}
        self.deliveries: dict[int, int] = {}
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
        out = self.acknowledged | self.held.keys()
        return [offset for offset in range(self.fresh) if offset not in out]


class Machine:
    def __init__(self) -> None:
        self.holders = [Holder("a"), Holder("b")]
        self.cursor = Cursor(0)
        self.engine = Engine(self.cursor, lambda: None)
        self.model = Model()
        self.now = 0.0

    def acquire(self, who: int, _offset: int, size: int, _flag: bool) -> None:
        """Lease what comes next; `now` counts steps, and a lease lasts three."""
        model, first = self.model, self.engine.next_returned()
        if first is not None:
            start = next(iter(model.returned()))
            assert first.start <= start < first.end
            start, end = first.start, min(first.end, max(first.start + size, start + 1))
        else:
            assert not model.returned()
            start, end = self.engine.fresh, min(self.engine.fresh + size, END)
        if start >= end:
            return
        lease = self.engine.acquire(self.holders[who], start, end, self.now + 3)
        open_offsets = [o for o in range(start, end) if o not in model.acknowledged]
        assert (lease.open_count if lease else 0) == len(open_offsets)
        for offset in open_offsets:
            model.held[offset] = (who, self.now + 3)
            model.deliveries[offset] = model.deliveries.get(offset, 0) + 1
            assert lease is not None
            assert lease.deliveries == model.deliveries[offset]
        model.fresh = max(model.fresh, end)

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
    leases, holder, at = Leases(), Holder("a"), 0
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
    engine, holder = Engine(Cursor(0), lambda: None), Holder("a")
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
    engine, holder = Engine(Cursor(0), lambda: None), Holder("a")
    engine.acquire(holder, 0, 2)
    engine.acknowledge(2, 5)
    assert engine.acquire(holder, 2, 5) is None
    assert engine.fresh == 5
    engine.acquire(holder, 5, 10)
    engine.fresh = 5
    with pytest.raises(AssertionError, match="one holder"):
        engine.acquire(holder, 5, 10)


def test_offsets_without_messages_are_passed_over() -> None:
    engine, holder = Engine(Cursor(0), lambda: None), Holder("a")
    engine.acquire(holder, 0, 5)
    engine.skip(5, 8)
    assert engine.fresh == 8
    engine.skip(10, 12)
    assert engine.fresh == 8
    assert list(engine.cursor.ranges) == [(5, 8), (10, 12)]


def test_ranges_are_acknowledged_by_their_beginnings_wherever_they_are() -> None:
    moves: list[int] = []
    engine = Engine(Cursor(0), lambda: moves.append(0))
    holder = Holder("a")
    for start in range(0, 50, 10):
        engine.acquire(holder, start, start + 10)
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
