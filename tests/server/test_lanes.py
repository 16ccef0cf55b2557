"""Goal: no request overtakes one that it conflicts with, and none waits for another one.

Method: any order of arrivals and ends, against the rule itself.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.kafka.session import CONFLICTS
from penstock.server.lanes import Lanes
from penstock.session import Conflicts

ONE_LANE: Conflicts = ((0,),)


class Model:
    """Arrivals in their order, and what ended; slow and plain."""

    def __init__(self, conflicts: Conflicts) -> None:
        self.conflicts = conflicts
        self.arrived: list[int] = []
        self.ended: set[int] = set()

    def arrive(self, lane: int) -> int:
        self.arrived.append(lane)
        return len(self.arrived) - 1

    def may_run(self, number: int) -> bool:
        others = self.conflicts[self.arrived[number]]
        return all(
            earlier in self.ended for earlier in range(number) if self.arrived[earlier] in others
        )


@given(
    st.sampled_from([ONE_LANE, CONFLICTS]),
    st.lists(st.tuples(st.booleans(), st.integers(0, 10))),
)
def test_requests_begin_as_soon_as_they_may(
    conflicts: Conflicts, steps: list[tuple[bool, int]]
) -> None:
    lanes: Lanes[int] = Lanes(conflicts)
    model = Model(conflicts)
    running: list[int] = []
    for arrives, choice in steps:
        if arrives:
            lane = choice % len(conflicts)
            number = model.arrive(lane)
            if lanes.is_free(lane):
                lanes.start(lane)
                running.append(number)
            else:
                lanes.park(lane, number)
        elif running:
            number = running.pop(choice % len(running))
            model.ended.add(number)
            lanes.end(model.arrived[number])
            while (begun := lanes.next()) is not None:
                running.append(begun)
        everyone = range(len(model.arrived))
        assert sorted(running) == [
            number for number in everyone if number not in model.ended and model.may_run(number)
        ]
        assert bool(lanes) == (len(running) + len(model.ended) < len(model.arrived))


def test_requests_of_a_lane_begin_in_their_order() -> None:
    lanes: Lanes[str] = Lanes(CONFLICTS)
    lanes.start(2)
    for name in ("first", "second", "third"):
        lanes.park(0, name)
    assert lanes.next() is None
    lanes.end(2)
    assert [lanes.next() for _ in range(4)] == ["first", "second", "third", None]


def test_what_waits_can_be_forgotten() -> None:
    lanes: Lanes[str] = Lanes(ONE_LANE)
    lanes.start(0)
    lanes.park(0, "behind")
    lanes.clear()
    lanes.end(0)
    assert (bool(lanes), lanes.next()) == (False, None)


def test_conflicts_are_mutual() -> None:
    with pytest.raises(AssertionError):
        Lanes([(1,), ()])
