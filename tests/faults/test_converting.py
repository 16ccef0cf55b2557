"""Goal: a small record that is very much to readers of another protocol takes nobody's turn.

Method: the watchdog of the event loop reports whatever holds it up, and `stand` fails on its line.
"""

from __future__ import annotations

import contextlib
from functools import cache

import cramjam
import pytest

from penstock.kafka.wire.primitives import encode_unsigned_varint
from penstock.log.header import Magic, build_header
from stand import Stand
from wire_clients import CLIENTS, KafkaWire, kafka_produce_fields

HEADERS = 1_000_000
BATCHES = 3


@cache
def crowded() -> bytes:
    """A batch of one record with a million empty headers, in less than 400 bytes."""
    # Encoded header by header it takes two seconds.
    fields = b"\0\0\0\1\2v" + encode_unsigned_varint(2 * HEADERS) + HEADERS * b"\0\1"
    body = bytes(cramjam.zstd.compress(encode_unsigned_varint(2 * len(fields)) + fields))
    times = {"base_timestamp": 1, "max_timestamp": 1}
    return build_header(Magic.KAFKA, body, record_count=1, attributes=4, **times) + body


@pytest.mark.parametrize("protocol", ["iggy", "pulsar"])
def test_a_record_with_a_million_headers_holds_the_loop_up_for_no_reader(
    stand: Stand, protocol: str
) -> None:
    """Attack: a Kafka producer stores a few of them, and a client of another protocol reads them.

    Bar: each reaches the reader, and no turn of the loop is as long as the watchdog would tell.
    """
    broker, batch = stand.start(), crowded()
    assert len(batch) < 400
    with contextlib.closing(KafkaWire(broker.kafka, "crowded")) as kafka:
        kafka.create_topic()
        for _ in range(BATCHES):
            (topic,) = kafka.ask("Produce", 9, **kafka_produce_fields("crowded", batch)).responses
            assert topic.partition_responses[0].error_code == 0
    with contextlib.closing(CLIENTS[protocol](getattr(broker, protocol), "crowded")) as reader:
        found: list[tuple[int, bytes]] = []
        while len(found) < BATCHES:
            found += reader.read(len(found))
    assert found == [(offset, b"v") for offset in range(BATCHES)]
