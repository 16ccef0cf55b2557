"""Goal: a job moves over from Spark's own Kafka source by changing its format, and by nothing else.

Method: one process of Spark asks both sources for the same things, with the same options, of the
same broker; the connector comes from Maven Central.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from broker_process import BrokerProcess
from versus.peers.peer import NotAvailableError
from versus.spark import connector

PROGRAM = Path(__file__).parents[1] / "support" / "spark_both_sources.py"
LIBRARIES = Path.home() / ".cache" / "penstock" / "interop"
RUN_SECONDS = 1200

REFUSED = {
    "never, so an error": "startingTimestamp",
    "an unknown topic": "both.nothing",
    "no topics": "subscribe",
    "two ways": "subscribe",
    "a partition left out": "startingOffsets",
    "a batch from the latest": "startingOffsets",
    "a batch to the earliest": "endingOffsets",
    "no number": "startingTimestamp",
    "auto.offset.reset": "auto.offset.reset",
    "a deserializer": "value.deserializer",
    "stream: an end": "endingOffsets",
}
"""What neither source does, with the option that our error names."""


@pytest.mark.soak
@pytest.mark.timeout(RUN_SECONDS + 300)
def test_both_sources_answer_alike(server: BrokerProcess, tmp_path: Path) -> None:
    try:
        jars = [str(jar) for jar in connector.jars(LIBRARIES)]
    except NotAvailableError as reason:
        pytest.skip(f"Spark's Kafka source is not at hand: {reason}")
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), server.kafka, ":".join(jars), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=RUN_SECONDS,
        check=True,
    )
    answers: dict[str, dict[str, Any]] = json.loads(ended.stdout.splitlines()[-1])
    moved = answers.pop("moved")
    for name, each in answers.items():
        theirs, ours = each["kafka"], each["penstock"]
        if name in REFUSED:
            assert "error" in theirs, name
            assert REFUSED[name] in ours["error"], name
        else:
            assert ours == theirs, name
            assert theirs["rows"] or "never" in name, name
    assert len(moved["before"]["rows"]) == 400
    assert [row[4] for row in moved["after"]["rows"]] == ["moved"]
