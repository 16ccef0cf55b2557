"""The Rust client of August 2023, the crate `iggy` 0.0.60, for which the early dialect is.

`make interop-iggy` compiles what is in `tests/support/early_iggy`; without that, this is skipped.
Whatever number an error has, that client says 304, 'invalid response'.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from broker_process import BrokerProcess

CLIENT = Path(os.environ.get("EARLY_IGGY_CLIENT", "build/early-iggy/debug/early-iggy"))
FIRST = "0=a/green 1=b/green 2=c/green"
LAST = "1=b/green 2=c/green 3=d/green"


def test_client_of_2023_does_all_that_it_can(shared_server: BrokerProcess) -> None:
    if not CLIENT.exists():
        pytest.skip("make interop-iggy compiles it")
    done = subprocess.run(
        [CLIENT, shared_server.iggy],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "again Err(304)",
        "stream 41 early.iggy 1",
        "topic 2 orders None [1, 2, 3]",
        "topics 1",
        "listed true",
        f"poll 1 3 {FIRST}",
        f"poll 1 3 {LAST}",
        "poll 1 3 2=c/green 3=d/green",
        f"poll 1 3 {FIRST}",
        "poll 1 3 3=d/green",
        "offset 3 3",
        "offset 0 0",
        f"poll 1 3 {LAST}",
        "group 5 [1, 2, 3] true",
        "me 41 2 5",
        f"poll 1 3 {FIRST}",
        "poll 2 0 0=key/green",
        "poll 3 0 ",
        "stats true true",
        "clients true",
        "gone Err(304)",
    ]
