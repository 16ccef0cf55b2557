"""Goal: a large message is not in memory twice to be decoded, besides its values."""

from __future__ import annotations

import tracemalloc

from penstock.kafka.wire import api

MIB = 1 << 20


def test_only_the_values_of_a_large_message_are_copied() -> None:
    join = api("JoinGroup").request
    sent = join(protocols=[join.JoinGroupRequestProtocol(name="range", metadata=bytes(8 * MIB))])
    frame = memoryview(bytearray(b"".join(join.encode(sent, 2))))
    join.decode(frame, 2)
    tracemalloc.start()
    try:
        message = join.decode(frame, 2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert message.protocols == sent.protocols
    assert type(message.protocols[0].metadata) is bytes
    assert peak < 9 * MIB
