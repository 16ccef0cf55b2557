"""The open loop: what is due does not wait for what came before."""

from __future__ import annotations

import pytest

from versus.schedule import Schedule, follow

SECOND = 1_000_000_000


class Clock:
    """Time that passes only where somebody sleeps or works."""

    def __init__(self) -> None:
        self.now = 0

    def now_ns(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)


def test_messages_are_due_at_even_times() -> None:
    schedule = Schedule(start_ns=5, rate=4, seconds=1.5)
    assert schedule.count == 6
    assert [schedule.due_ns(n) - 5 for n in range(5)] == [n * SECOND // 4 for n in range(5)]


def test_due_times_do_not_drift() -> None:
    assert Schedule(0, 3, 10).due_ns(30) == 10 * SECOND


def test_a_stall_delays_no_due_time() -> None:
    clock = Clock()
    late: list[int] = []

    def send(number: int, due: int) -> None:
        late.append(clock.now - due)
        if number == 2:
            clock.now += SECOND // 2

    follow(Schedule(0, 10, 1), send, clock.now_ns, clock.sleep)
    tenth = SECOND // 10
    # 400, 300, 200 and 100 ms late: the stall counts for each message that it held up.
    assert late == [0, 0, 0, 4 * tenth, 3 * tenth, 2 * tenth, tenth, 0, 0, 0]


def test_nothing_is_sent_before_it_is_due() -> None:
    clock = Clock()
    sent: list[int] = []
    follow(Schedule(SECOND, 2, 2), lambda _, due: sent.append(due), clock.now_ns, clock.sleep)
    assert sent == [SECOND, 3 * SECOND // 2, 2 * SECOND, 5 * SECOND // 2]


def test_sleep_that_ends_early_is_continued() -> None:
    clock = Clock()
    sleeps: list[float] = []

    def short_sleep(seconds: float) -> None:
        sleeps.append(seconds)
        clock.sleep(seconds / 2 if seconds > 0.01 else seconds)

    follow(Schedule(SECOND, 1, 1), lambda *_: None, clock.now_ns, short_sleep)
    assert len(sleeps) > 1
    assert clock.now == SECOND


@pytest.mark.parametrize("rate", [1, 10, 1000])
def test_the_first_fifth_is_warm_up(rate: int) -> None:
    schedule = Schedule(0, rate, 10)
    assert schedule.settled(list(range(schedule.count))) == list(range(2 * rate, 10 * rate))
