"""Small batches share a lease, and each has its own fate."""

from __future__ import annotations

import tracemalloc
from itertools import accumulate, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.broker.subscriptions.bitmaps import BLOCK
from penstock.broker.subscriptions.cursor import Cursor
from penstock.broker.subscriptions.engine import Engine
from penstock.broker.subscriptions.leases import Holder
from penstock.memory import Memory


class Batches:
    """Batches of a few messages, handed out to two consumers in turns, and where each is."""

    def __init__(self, sizes: list[int]) -> None:
        starts = [0, *accumulate(sizes)]
        self.batches = list(pairwise(starts))
        self.engine = Engine(Cursor(0), lambda: None, Memory().subscriptions)
        self.holders = [Holder("a"), Holder("b")]
        self.held: dict[tuple[int, int], tuple[int, int]] = {}
        self.back: dict[tuple[int, int], int] = {}
        self.fresh = 0

    def hand_out(self, who: int, count: int) -> None:
        for _ in range(count):
            if self.back:
                batch = min(self.back)
                deliveries = self.back.pop(batch)
            elif self.fresh < len(self.batches):
                batch, deliveries = self.batches[self.fresh], 0
                self.fresh += 1
            else:
                return
            first = self.engine.next_returned()
            # What is acknowledged in a range that came back is passed over, as a push does.
            while first is not None and first.start < batch[0]:
                extent = first.extent(first.start)
                assert extent is not None
                assert self.engine.acquire(self.holders[who], *extent) is None
                first = self.engine.next_returned()
            out = self.engine.acquire(self.holders[who], *batch)
            assert out == (deliveries + 1, batch[1] - batch[0])
            self.held[batch] = who, deliveries + 1

    def acknowledge(self, place: int) -> None:
        known = sorted([*self.held, *self.back])
        if known:
            batch = known[place % len(known)]
            assert self.engine.acknowledge_extents([batch[0]]) == 1
            self.held.pop(batch, None)
            self.back.pop(batch, None)

    def give_back(self, place: int) -> None:
        if self.held:
            batch = sorted(self.held)[place % len(self.held)]
            who, self.back[batch] = self.held.pop(batch)
            self.engine.release_batch(self.holders[1 - who], batch[0])
            self.engine.release_batch(self.holders[who], batch[0])
            self.engine.release_batch(self.holders[who], batch[0])

    def leave(self, who: int) -> None:
        self.engine.release_all(self.holders[who], counted=False)
        for batch, (holder, deliveries) in tuple(self.held.items()):
            if holder == who:
                del self.held[batch]
                self.back[batch] = deliveries - 1

    def check(self) -> None:
        for start, end in (*self.held, *self.back):
            assert self.engine.extent(start) == (start, end)
            assert all(self.engine.extent(inside) is None for inside in range(start + 1, end))
        for who, holder in enumerate(self.holders):
            mine = [batch for batch, (each, _) in self.held.items() if each == who]
            assert holder.unacknowledged == sum(end - start for start, end in mine)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.integers(1, 5) | st.sampled_from([BLOCK - 1, BLOCK + 1]), max_size=40),
    st.lists(
        st.tuples(
            st.sampled_from(["hand_out", "hand_out", "acknowledge", "give_back", "leave"]),
            st.integers(0, 1),
            st.integers(0, 20),
        ),
        max_size=40,
    ),
)
def test_batches_of_one_lease_have_each_their_own_fate(
    sizes: list[int], steps: list[tuple[str, int, int]]
) -> None:
    batches = Batches(sizes)
    for name, who, number in steps:
        if name == "hand_out":
            batches.hand_out(who, number)
        elif name == "leave":
            batches.leave(who)
        else:
            getattr(batches, name)(number)
        batches.check()


def test_messages_that_are_out_take_little() -> None:
    """Two consumers that get 20 small messages each in turns, and acknowledge none."""
    engine, holders = (
        Engine(Cursor(0), lambda: None, Memory().subscriptions),
        [Holder("a"), Holder("b")],
    )
    count = 20_000
    tracemalloc.start()
    for offset in range(count):
        engine.acquire(holders[offset // 20 % 2], offset, offset + 1)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 40 * count
    assert sum(holder.unacknowledged for holder in holders) == count
