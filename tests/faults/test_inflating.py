"""Goal: producers whose small requests inflate to very much keep nobody's requests from theirs.

Method: a producer of ordinary compressed batches, which are looked into in the same threads, works
beside eight of these, and counts what it gets done: with a turn for each of nine it would be a
handful, and with a turn of its own it is most of what there was before.
"""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Callable

import cramjam
import pytest

from broker_process import BrokerProcess
from message_sets import GZIP, Message, write
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.log.header import HEADER_SIZE, Magic, build_header
from stand import MIB, Stand
from wire_clients import KafkaWire, kafka_produce_fields, kafka_request

INFLATED = 120 * MIB
PRODUCERS = 8
SECONDS = 4


def batch_of(body: bytes, codec: int) -> bytes:
    times = {"base_timestamp": 1, "max_timestamp": 1}
    return build_header(Magic.KAFKA, body, record_count=1, attributes=codec, **times) + body


def by_gzip() -> bytes:
    return batch_of(gzip.compress(bytes(INFLATED), 1), 1)


def by_zstd() -> bytes:
    return batch_of(bytes(cramjam.zstd.compress(bytes(INFLATED))), 4)


def ordinary() -> bytes:
    """As a producer sends 300 KB of text."""
    source = random.Random(1)
    words = [source.randbytes(3) for _ in range(500)]
    value = b"".join(source.choice(words) for _ in range(100_000))
    inner = bytes(encode_batch([Record(value, timestamp_ms=1)])[HEADER_SIZE:])
    return batch_of(gzip.compress(inner, 1), 1)


def produced(client: KafkaWire, batch: bytes) -> int:
    """Return how many batches a client gets stored one after another in a while."""
    count, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        fields = kafka_produce_fields(client.topic, batch)
        (topic,) = client.ask("Produce", 9, **fields).responses
        assert topic.partition_responses[0].error_code == 0
        count += 1
    return count


def attack_by(body: bytes, version: int) -> bytes:
    return kafka_request("Produce", version, **kafka_produce_fields("bombs", body))


def by_message_set() -> bytes:
    inner = gzip.compress(write(1, Message(bytes(INFLATED))), 1)
    return write(1, Message(inner, attributes=GZIP))


ATTACKS: dict[str, tuple[Callable[[], bytes], int]] = {
    "gzip": (by_gzip, 9),
    "zstd": (by_zstd, 9),
    "message set": (by_message_set, 2),
}


@pytest.mark.soak
@pytest.mark.parametrize("name", ATTACKS)
def test_requests_that_inflate_to_much_keep_no_producer_from_its_turn(
    stand: Stand, name: str
) -> None:
    """Attack: eight connections send without end what inflates to 120 MiB, in 120 KB or less.

    Bar: a producer of compressed batches has an eighth or more of what it had before: it has no
    more than a third of the processor then.
    """
    broker: BrokerProcess = stand.start()
    for topic in ("bombs", "ordinary"):
        KafkaWire(broker.kafka, topic).create_topic()
    batch, client = ordinary(), KafkaWire(broker.kafka, "ordinary")
    produced(client, batch)
    before = produced(client, batch)
    make, version = ATTACKS[name]
    frame = attack_by(make(), version)
    for _ in range(PRODUCERS):
        connection = stand.connect(broker, "kafka")
        stand.drain(connection)
        stand.flood(connection, frame, times=10_000)
    time.sleep(1)
    during = max(produced(client, batch) for _ in range(3))
    assert during >= before / 8, (before, during)
