"""A check that finds nothing must be seen to find something: brokers with bugs, and what is found.

Method: clients of the three protocols write and follow, flushes take long, and the broker dies and
comes back, as in test_crash.py; but the broker has a bug.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from crash_run import CrashRun
from faulty_broker import FaultyBroker
from histories import History, Kind, find_anomalies

SLOW_FLUSH_MS = 300
EVENTS_MIN = 100
DEATHS_MAX = 5
"""A death shows a bug only where it comes at the wrong moment for somebody."""
CAUGHT = {
    "flush_does_nothing": {Kind.LOST},
    "acknowledged_before_the_flush": {Kind.LOST},
    "seen_before_the_flush": {Kind.DIRTY},
    "batches_are_dropped": {Kind.LOST},
    "receipts_are_wrong": {Kind.LOST},
    "sequences_are_forgotten": {Kind.DUPLICATED},
    "readers_skip": {Kind.SKIPPED},
}
"""What must be found of each: any of these."""
SHORT = ["seen_before_the_flush"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("bug", SHORT)
def test_a_bug_is_caught(tmp_path: Path, bug: str) -> None:
    catch(tmp_path, bug)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("bug", sorted(CAUGHT.keys() - SHORT))
def test_each_bug_is_caught(tmp_path: Path, bug: str) -> None:
    catch(tmp_path, bug)


def catch(folder: Path, bug: str) -> None:
    found: set[Kind] = set()
    for number in range(DEATHS_MAX):
        place = folder / str(number)
        place.mkdir()
        broker = FaultyBroker(place, bug=bug)
        broker.start()
        try:
            found |= {anomaly.kind for anomaly in find_anomalies(one_death(broker, bug))}
        finally:
            broker.end()
        if found & CAUGHT[bug]:
            return
    raise AssertionError(f"{bug} was not seen; found were {found}")


def one_death(broker: FaultyBroker, bug: str) -> History:
    run = CrashRun(broker, "bug")
    with run.clients("write", "follow"):
        run.wait_for("ok", EVENTS_MIN)
        run.wait_for("read", EVENTS_MIN)
        with broker.disk.slow(SLOW_FLUSH_MS, "fdatasync"):
            time.sleep(1)
            if bug == "sequences_are_forgotten":  # It takes what is there and not acknowledged.
                broker.kill9()
            else:
                broker.power_cut()
                run.kill_writers()
            broker.start()
        if bug == "sequences_are_forgotten":
            run.wait_for("ok", EVENTS_MIN)
            run.stop_writers()
        return run.history()
