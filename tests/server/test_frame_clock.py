"""Goal: a frame's time runs from its first byte, however its bytes come."""

from __future__ import annotations

from penstock.limits import FRAME_BYTES_A_SECOND, FRAME_SECONDS
from penstock.server.frame_clock import FrameClock


def test_bytes_that_trickle_in_do_not_start_it_anew():
    clock = FrameClock(0)
    for second in range(FRAME_SECONDS + 1):
        assert not clock.is_over(second)
        clock.received(1 + second, second, is_another=False)
    assert clock.is_over(FRAME_SECONDS + 1)


def test_a_connection_s_first_frame_begins_with_the_connection():
    clock = FrameClock(5)
    clock.received(1, 5 + FRAME_SECONDS, is_another=False)
    assert clock.is_over(5 + FRAME_SECONDS + 1)


def test_the_next_frame_has_its_own_time():
    clock = FrameClock(0)
    clock.received(100, 9, is_another=True)
    assert not clock.is_over(9 + FRAME_SECONDS)
    clock.received(0, 10, is_another=True)
    assert not clock.is_over(1_000_000)
    clock.received(10, 1_000_000, is_another=False)
    assert not clock.is_over(1_000_000 + FRAME_SECONDS)
    assert clock.is_over(1_000_000 + FRAME_SECONDS + 1)


def test_a_large_frame_has_the_time_that_a_slow_line_takes():
    clock = FrameClock(0)
    for second in range(1, 3200):
        clock.received(second * FRAME_BYTES_A_SECOND, second, is_another=False)
        assert not clock.is_over(second)
    assert clock.is_over(3199 + FRAME_SECONDS + 1), "it stopped"


def test_time_in_which_the_broker_does_not_read_is_left_out():
    clock = FrameClock(0)
    clock.received(1, 1, is_another=False)
    clock.pause(5)
    assert not clock.is_over(500)
    clock.resume(500)
    assert not clock.is_over(500 + FRAME_SECONDS - 5)
    assert clock.is_over(500 + FRAME_SECONDS)
