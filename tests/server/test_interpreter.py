from __future__ import annotations

import sys

from penstock.limits import THREAD_SWITCH_MICROSECONDS
from penstock.server.interpreter import share_between_threads


def test_threads_share_the_interpreter_more_than_ten_times_as_often() -> None:
    before = sys.getswitchinterval()  # A broker that other tests have in this process changes it.
    usual = 0.005
    sys.setswitchinterval(usual)
    try:
        share_between_threads()
        assert sys.getswitchinterval() == THREAD_SWITCH_MICROSECONDS / 1_000_000
        assert sys.getswitchinterval() <= usual / 10
    finally:
        sys.setswitchinterval(before)
