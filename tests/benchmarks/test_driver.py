"""An order travels to the load generator whole, and its use of the processor is told."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

from patience import wait_until
from versus.driver import OwnUse, outcome
from versus.generator import PACKAGES
from versus.loads import Kind
from versus.order import Done, Order

ORDER = Order(
    protocol="kafka",
    address="127.0.0.1:1",
    kind=Kind.PUBLISH,
    topic="topic",
    value_bytes=100,
    tuned=True,
    seconds=1.5,
    bytes_max=1000,
    count=3,
    rate=4,
    window=5,
    partitions=6,
    transaction=7,
    topic_options={"key": "value"},
)


def test_an_order_is_the_same_after_the_journey() -> None:
    assert Order.from_json(ORDER.to_json()) == ORDER


def test_outcome_has_percentiles_only_where_times_were_taken() -> None:
    assert "latency_ms" not in outcome(Done(1, 1.0), {})
    assert outcome(Done(1, 1.0, [5_000_000]), {})["latency_ms"]["max"] == 5.0


def test_the_busiest_thread_is_found() -> None:
    use = OwnUse()

    seen = threading.Event()

    def spin() -> None:
        while not seen.is_set():
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    # It is looked at while it lives: what an ended thread took is in the total alone.
    try:
        wait_until(lambda: use.since()["busiest_thread_seconds"] >= 0.1)
    finally:
        seen.set()
        thread.join()
    assert use.since()["cpu_seconds"] >= 0.1


def test_a_load_that_fails_says_why(tmp_path: Path) -> None:
    broken = json.loads(ORDER.to_json()) | {"kind": "consume", "value_bytes": "no number"}
    ended = subprocess.run(
        [sys.executable, "-m", "versus.driver", json.dumps(broken)],
        env={"PYTHONPATH": str(PACKAGES)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(ended.stdout)
    assert told["event"] == "failed"
    assert "TypeError" in told["reason"]
