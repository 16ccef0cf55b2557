"""Goal: an answer counts as a whole until its last byte is sent."""

from __future__ import annotations

from penstock.server.unsent import Unsent


def test_an_answer_is_held_until_its_last_byte_is_sent() -> None:
    unsent = Unsent()
    unsent.add(100)
    unsent.add(50)
    held = []
    for left in (150, 149, 51, 50, 49, 1, 0):
        unsent.look(left)
        held.append(unsent.held)
    assert held == [150, 150, 150, 50, 50, 50, 0]
    assert unsent.left == 0


def test_what_was_not_added_counts_as_far_as_it_is_left() -> None:
    unsent = Unsent()
    unsent.look(30)
    assert (unsent.left, unsent.held) == (30, 30)
    unsent.add(10)
    unsent.look(40)
    assert unsent.held == 40
    unsent.look(5)
    assert unsent.held == 10
