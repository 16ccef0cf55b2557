"""Goal: a client that takes its time over a request, however it spreads its bytes, is cut."""

from __future__ import annotations

import select
import time

import pytest

from penstock import limits
from stand import PROTOCOLS, Stand

CLIENTS = 300
SECONDS_MAX = 15
"""From a request's first byte; a broker that others keep from the processor may need more."""
ENDLESS = {
    "kafka": (1_000_000).to_bytes(4) + bytes.fromhex("0000000a00000001ffff"),
    "pulsar": (1_000_000).to_bytes(4),
    "iggy": bytes(100),
}


@pytest.mark.soak
def test_clients_that_send_a_byte_a_second_are_cut(stand: Stand) -> None:
    """Attack: 300 connections of all protocols that never end their first request.

    Bar: all are cut within 15 s, each byte of theirs notwithstanding.
    """
    stand.allow("more lines like this were left out")
    assert SECONDS_MAX > limits.FRAME_SECONDS
    broker = stand.start()
    clients = [
        (stand.connect(broker, protocol), ENDLESS[protocol])
        for protocol in PROTOCOLS
        for _ in range(CLIENTS // len(PROTOCOLS))
    ]
    began = time.monotonic()
    left = dict(clients)
    for second in range(SECONDS_MAX):
        for client, endless in left.items():
            client.sendall(endless[second : second + 1] or b"\0")
        time.sleep(max(0, began + second + 1 - time.monotonic()))
        ended, _, _ = select.select(list(left), [], [], 0)
        for client in ended:
            del left[client]
    assert not left, f"{len(left)} of {CLIENTS} are there after {SECONDS_MAX} s"
