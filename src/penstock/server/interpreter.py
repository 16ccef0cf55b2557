"""How long one thread of the process keeps the interpreter from the others."""

from __future__ import annotations

import sys
from typing import Final

from penstock.limits import THREAD_SWITCH_MICROSECONDS

_SECONDS: Final = THREAD_SWITCH_MICROSECONDS / 1_000_000


def share_between_threads() -> None:
    """Have a thread that waits for the interpreter get it soon.

    A write and its flush take a thread of their own, which needs the interpreter after each of its
    steps. By Python's own 5 ms a producer beside clients that keep the event loop busy waits for
    its receipt thirty times as long as for an answer from the loop: 178 ms beside four clients that
    list a thousand topics, and 6 ms by this one. Writes cost the same by either: with batches of 16
    and 64 KiB, and one by one, the ratio of their CPU was between 0.96 and 1.05.
    """
    sys.setswitchinterval(_SECONDS)
