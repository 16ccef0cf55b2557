"""A log on a real device that the kernel slows down: it is waited for, but never by the loop.

`test_writes.py` counts the calls that Python makes; this one sees what the kernel does with them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from broker_process import BrokerProcess
from slow_device import NotAvailableError, Sleeps, SlowDevice, slow_device
from stand import Stand

OPERATIONS_PER_SECOND = 20
"""50 ms each; a flush of ext4 takes several."""
SECONDS = 20
SLEEP_MS_MAX = 5


@pytest.fixture
def device() -> Iterator[SlowDevice]:
    with contextlib.ExitStack() as undone:
        try:
            made = undone.enter_context(slow_device())
        except NotAvailableError as reason:
            pytest.skip(f"no slow device can be made here: {reason}")
        yield made


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_a_slow_device_never_holds_the_loop_up(device: SlowDevice, stand: Stand) -> None:
    """Fault: all of the data folder is on a device of 20 operations a second.

    Bar: the loop's thread sleeps for it no longer than 5 ms at a stretch, and so PING, which needs
    no disk, is answered as before; what is acknowledged waits for the device."""
    folder = device.mount / "broker"
    folder.mkdir()
    broker = BrokerProcess(folder, "--segment-bytes", "1MiB")
    stand.add(broker)
    with stand.probing(broker) as probes:
        sleeps = Sleeps(broker.pid)  # The main thread has the process's number.
        with device.slow(OPERATIONS_PER_SECOND), probes.attack():
            time.sleep(SECONDS)
        sleeps.end()
        during = probes.latencies()
    assert during.of("produce").p50 > 1 / OPERATIONS_PER_SECOND, "the device is not slow"
    assert sleeps.looks > 100 * SECONDS, "too little was seen"
    assert sleeps.longest_ms <= SLEEP_MS_MAX, f"{sleeps.longest_ms:.0f} ms in\n{sleeps.longest_in}"
