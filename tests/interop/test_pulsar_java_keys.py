"""Goal: consumers of Java's client that share keys have each key's messages once, in their order:
as they join and leave, with ranges that they choose, transactions, chunks and delays.

`PulsarKeys.java` is what uses it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_process import BrokerProcess
from pulsar_java import check_said

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

PROBE = Path(__file__).parents[1] / "support" / "PulsarKeys.java"
RESULTS = [
    "singles 40 in order at 5",
    "batches 40 in order at 5",
    "chosen 40 in order at 2 apart true refused an overlap",
    "readers 40 in order at 2 apart true",
    "transactions 40 in order aborted 80 then nothing",
    "chunks 40 in order at 3 apart true",
    "delays 40 in order apart true early false",
]


def test_each_key_comes_in_order(server: BrokerProcess, tmp_path: Path) -> None:
    check_said(PROBE, server.pulsar, RESULTS, tmp_path / "errors.txt")
