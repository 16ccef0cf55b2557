"""An open loop: messages are due at fixed times, however long earlier ones take.

Latency counts from the time at which a message was due and not from when it was sent, so that a
stall of the broker shows in every message that it delays: there is no coordinated omission.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """Times in nanoseconds of the clock `time.perf_counter_ns`, which all processes share."""

    start_ns: int
    rate: int
    seconds: float

    @property
    def count(self) -> int:
        return int(self.rate * self.seconds)

    def due_ns(self, number: int) -> int:
        return self.start_ns + number * 1_000_000_000 // self.rate

    def settled(self, latencies_ns: list[int]) -> list[int]:
        """What is left without the first fifth, in which client and broker warm up."""
        return latencies_ns[self.count // 5 :]


def follow(
    schedule: Schedule,
    send: Callable[[int, int], None],
    now_ns: Callable[[], int] = time.perf_counter_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Call `send(number, due)` for each message when it is due, or at once when it is late."""
    for number in range(schedule.count):
        due = schedule.due_ns(number)
        while (wait := due - now_ns()) > 0:
            sleep(wait / 1e9)
        send(number, due)
