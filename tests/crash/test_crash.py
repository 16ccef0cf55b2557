"""Goal: what was acknowledged survives the broker's sudden death, for readers of every protocol.

Method: three real clients write to one topic at the same time, the broker is killed at a moment
that differs from round to round, and is started again over what it left. Then each real client
reads the whole topic, and what all saw is checked as one history: all three must find the same
messages at the same places, and every acknowledged one among them, at the place that its writer
was told.
"""

from __future__ import annotations

import random
import time

import pytest

from broker_process import BrokerProcess
from crash_run import CrashRun
from histories import find_anomalies

ACKNOWLEDGED_MIN = 100
"""Messages that each client must have written before the broker is killed."""


@pytest.mark.timeout(600)
def test_what_was_acknowledged_survives_ten_crashes(server: BrokerProcess) -> None:
    crash(server, rounds=10, seed=2013)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_what_was_acknowledged_survives_a_hundred_crashes(server: BrokerProcess) -> None:
    crash(server, rounds=100, seed=time.time_ns())


def crash(server: BrokerProcess, rounds: int, seed: int) -> None:
    """Kill the broker while clients write, which die with it."""
    chance = random.Random(seed)
    for number in range(rounds):
        run = CrashRun(server, f"crash-{number}")
        with run.clients("write"):
            run.wait_for("ok", ACKNOWLEDGED_MIN)
            time.sleep(chance.uniform(0, 0.5))
            server.kill9()
        server.start()
        assert find_anomalies(run.history()) == [], f"round {number}, seed {seed}"
