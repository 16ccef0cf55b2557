"""Goal: with Java's client messages come at their time, are put off and come back
(`reconsumeLater`), and end as dead letters.

`PulsarDelays.java` is what uses it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_process import BrokerProcess
from pulsar_java import check_said

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

PROBE = Path(__file__).parents[1] / "support" / "PulsarDelays.java"
RESULTS = [
    "delays [0, 700, 1200]",
    "chunks 10000 true",
    "retries [retries null, retries-s-RETRY 1, retries-s-RETRY 2] dead bad",
    "backoff [0, 1, 2] dead bad",
]


def test_messages_come_later(server: BrokerProcess, tmp_path: Path) -> None:
    check_said(PROBE, server.pulsar, RESULTS, tmp_path / "errors.txt")
