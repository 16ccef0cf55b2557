"""The published clients of apache-iggy 0.5 to 0.8, each of which has to be at home.

`make interop-iggy` installs them side by side, since they are versions of one package; without that
the tests are skipped.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from apache_iggy import PollingStrategy

from broker_process import BrokerProcess
from iggy_clients import connected, poll

CLIENTS = Path(os.environ.get("OLDER_IGGY_CLIENTS", "build/iggy-clients"))
SCRIPT = Path(__file__).parents[1] / "support" / "older_iggy_client.py"
LAST = "ééééé"


@pytest.fixture(params=["0.5.0", "0.6.0", "0.7.0", "0.8.0"])
def release(request: pytest.FixtureRequest) -> str:
    if not (CLIENTS / request.param).exists():
        pytest.skip("make interop-iggy installs it")
    return str(request.param)


async def test_client_does_all_that_it_can(shared_server: BrokerProcess, release: str) -> None:
    began = time.monotonic()
    done = await asyncio.to_thread(
        subprocess.run,
        [CLIENTS / release / "bin" / "python", SCRIPT, shared_server.iggy],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    first = [[number, f"0-{number}"] for number in range(5)] + [[5, LAST]]
    assert seen == {
        "wrong password": "InvalidCredentials",
        "twice": "StreamNameAlreadyExists",
        "stream": [f"older-{release}", 1],
        "topic": [0, "t", 2],
        "missing": [None, None],
        "no topic": "TopicNameNotFound" if release == "0.5.0" else "TopicIdNotFound",
        "first": first[:4],
        "last": first[2:],
        "offset": first[3:],
        "timestamp": first[:4],
        "next": first[1:5],
        "next again": first[5:],
        "group": sorted([*(f"{part}-{number}" for part in (0, 1) for number in range(5)), LAST]),
    }
    assert time.monotonic() - began < 60, "it did not wait for a time-out"
    today = await connected(shared_server.iggy)
    read = await poll(today, f"older-{release}", "t", PollingStrategy.First(), partition=1)
    assert read == [(number, f"1-{number}".encode()) for number in range(5)]
