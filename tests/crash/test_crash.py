"""Goal: what was acknowledged survives the broker's sudden death, for readers of every protocol.

Method: three real clients write to one topic at the same time, the broker is killed at a moment
that differs from round to round, and is started again over what it left. Then each real client
reads the whole topic, and what all saw is checked as one history: all three must find the same
messages at the same places, and every acknowledged one among them, at the place that its writer
was told.

Where clients outlive the broker's death, others follow what is written meanwhile. What they saw
must still be there: nothing is seen before it is safe.
"""

from __future__ import annotations

import random
import time

import pytest

from broker_process import BrokerProcess
from crash_run import CrashRun
from faulty_broker import FaultyBroker
from histories import find_anomalies
from stand import Stand

ACKNOWLEDGED_MIN = 100
"""Messages that each client must have written before the broker is killed."""
SLOW_FLUSH_MS = 300
"""How long a flush takes when the broker dies: long enough to die in."""


@pytest.mark.timeout(600)
def test_what_was_acknowledged_survives_five_crashes(server: BrokerProcess) -> None:
    crash(server, rounds=5, seed=2013)


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


@pytest.mark.timeout(300)
def test_clients_that_outlive_a_power_cut_see_one_history(stand: Stand) -> None:
    outlive(stand, cuts=1, seed=2013)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("flush", ["acknowledged", "written"])
def test_clients_that_outlive_many_deaths_see_one_history(stand: Stand, flush: str) -> None:
    outlive(stand, cuts=10, seed=time.time_ns(), flush=flush)


def outlive(stand: Stand, cuts: int, seed: int, flush: str = "acknowledged") -> None:
    """Let clients write and follow on while the broker dies and comes back again and again.

    A power cut takes what was not flushed, so it is no fair death where `flush` is "written".
    """
    chance = random.Random(seed)
    broker = FaultyBroker(stand.fresh_folder(), "--flush", flush)
    stand.add(broker)
    stand.allow("recovered|recovery|cut off|torn")
    run = CrashRun(broker, "outlive")
    with run.clients("write", "follow"):
        for cut in range(cuts):
            run.wait_for("ok", ACKNOWLEDGED_MIN)
            run.wait_for("read", ACKNOWLEDGED_MIN)
            with broker.disk.slow(SLOW_FLUSH_MS, "fdatasync"):
                time.sleep(chance.uniform(0.5, 1))
                if flush == "acknowledged" and (cut == 0 or chance.random() < 0.5):
                    broker.power_cut(None if cut == 0 else chance)
                else:
                    broker.kill9()
                broker.start()
        run.wait_for("ok", ACKNOWLEDGED_MIN)
        run.stop_writers()
        assert find_anomalies(run.history(caught_up=True)) == [], f"seed {seed}"
