"""Goal: a clock that is set, on or back, ends nothing and keeps nothing open."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings

TIMEOUT_MS = 60_000
HOUR_NS = 3_600 * 1_000_000_000


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_transaction_has_its_time_however_the_clock_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    broker = await Broker.open(tmp_path, BrokerSettings())
    transactions = broker.transactions
    producer = await transactions.begin(TIMEOUT_MS)
    wall, monotonic = time.time_ns, time.monotonic_ns
    monkeypatch.setattr(time, "time_ns", lambda: wall() + hours * HOUR_NS)
    await transactions.check_times()
    assert transactions.how_ended(producer.id) is None, "it is open"
    monkeypatch.setattr(time, "monotonic_ns", lambda: monotonic() + 2 * TIMEOUT_MS * 1_000_000)
    await transactions.check_times()
    assert transactions.how_ended(producer.id) is False, "it is late"
    await broker.close()
