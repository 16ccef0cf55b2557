"""Goal: a topic keeps Kafka's batches in its compression.type, and nothing else of them changes.

Method: batches of every codec into sessions without a socket, read back by decoders of ours; two
real clients on a broker as users run it.
"""

from __future__ import annotations

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from broker_process import BrokerProcess
from kafka_dialog import TOPIC, Dialog
from message_sets import Message, message_set
from patience import PATIENCE_SECONDS
from penstock import limits, records
from penstock.broker.topics.settings import CODECS
from penstock.clients.kafka import record_batch
from penstock.kafka.handlers import api_00_produce
from penstock.kafka.wire import ErrorCode, api
from penstock.log.header import HEADER_SIZE, Magic, build_header, checksum_matches, read_header
from penstock.memory import Reading
from penstock.records.kafka.compression import compress_kafka
from stored_batches import read

RECORDS = [record_batch.Record(b"value %d" % n * 20, b"k", timestamp_ms=5 + n) for n in range(30)]
OWNED = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
DEADLINE_SECONDS = PATIENCE_SECONDS


def batch(codec: str, sent: list[record_batch.Record] = RECORDS, **fields: int) -> bytearray:
    plain = record_batch.encode_batch(sent)
    header = read_header(plain)
    body = compress_kafka(CODECS[codec], memoryview(plain)[HEADER_SIZE:], None)
    times = {"base_timestamp": header.base_timestamp, "max_timestamp": header.max_timestamp}
    made = build_header(
        Magic.KAFKA, body, record_count=len(sent), attributes=CODECS[codec], **times, **fields
    )
    return made + body


def end_of(dialog: Dialog) -> int:
    topic = dialog.broker.topics.by_kafka_name(TOPIC)
    assert topic is not None
    return topic.partition(0).end_offset


async def stored(dialog: Dialog, offset: int = 0) -> bytes:
    return bytes((await dialog.fetch(offset)).records)


@pytest.mark.parametrize("kept", CODECS)
@pytest.mark.parametrize("sent", CODECS)
async def test_every_codec_becomes_that_of_the_topic(dialog: Dialog, sent: str, kept: str) -> None:
    await dialog.create_topic(compression_type=kept)
    original = batch(sent, **OWNED)
    assert (await dialog.produce(bytearray(original))).error_code == 0
    found = await stored(dialog)
    assert checksum_matches(found)
    before, after = read_header(original), read_header(found)
    changing = {"length": 0, "crc": 0, "attributes": 0}
    assert before._replace(**changing) == after._replace(**changing)
    assert after.attributes == CODECS[kept]
    assert read(records.decode(found)) == read(records.decode(original))
    if sent == kept:
        assert found == bytes(original)


async def test_what_is_sent_again_is_stored_once(dialog: Dialog) -> None:
    await dialog.create_topic(compression_type="zstd")
    answers = [await dialog.produce(batch("gzip", **OWNED)) for _ in range(2)]
    assert [(each.error_code, each.base_offset) for each in answers] == [(0, 0), (0, 0)]
    assert end_of(dialog) == len(RECORDS)


async def test_a_level_is_in_effect(dialog: Dialog) -> None:
    sizes = []
    mixed = [record_batch.Record(bytes(n * n % 251 for n in range(20_000)))]
    for level in ("1", "9"):
        await dialog.create_topic(level, compression_type="gzip", compression_gzip_level=level)
        assert (await dialog.produce(batch("uncompressed", mixed), topic=level)).error_code == 0
        sizes.append(len((await dialog.fetch(0, topic=level)).records))
    assert sizes[1] < sizes[0]


async def test_a_change_holds_for_what_comes_then(dialog: Dialog) -> None:
    await dialog.create_topic()
    types = api("IncrementalAlterConfigs").request
    for value in ("lz4", "producer"):
        change = types.AlterableConfig(name="compression.type", config_operation=0, value=value)
        changed = types.AlterConfigsResource(resource_type=2, resource_name=TOPIC, configs=[change])
        response = await dialog.ask("IncrementalAlterConfigs", resources=[changed])
        assert response.responses[0].error_code == 0
        offset = end_of(dialog)
        assert (await dialog.produce(batch("gzip"))).error_code == 0
        kept = read_header(await stored(dialog, offset)).attributes
        assert kept == CODECS["lz4" if value == "lz4" else "gzip"]


async def test_message_sets_are_put_into_it_too(dialog: Dialog) -> None:
    await dialog.create_topic(compression_type="snappy")
    old = bytearray(message_set(1, [Message(b"one", None, 5), Message(b"two", None, 6)]))
    assert (await dialog.produce(old, version=2)).error_code == 0
    found = await stored(dialog)
    assert read_header(found).attributes == CODECS["snappy"]
    assert [each.value for each in read(records.decode(found))] == [b"one", b"two"]


@pytest.mark.parametrize("validated", ["true", "false"])
async def test_what_can_not_be_inflated_is_refused(dialog: Dialog, validated: str) -> None:
    await dialog.create_topic(compression_type="zstd", penstock_validate_records=validated)
    garbage = build_header(
        Magic.KAFKA, b"no gzip", record_count=1, base_timestamp=1, max_timestamp=1, attributes=1
    )
    result = await dialog.produce(garbage + b"no gzip")
    assert result.error_code == ErrorCode.INVALID_RECORD
    assert end_of(dialog) == 0


async def test_the_size_counts_before_and_after(dialog: Dialog) -> None:
    large = [record_batch.Record(bytes(50_000))]
    await dialog.create_topic(compression_type="uncompressed", max_message_bytes="10000")
    refused = await dialog.produce(batch("gzip", large))
    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE
    await dialog.create_topic("small", compression_type="gzip", max_message_bytes="10000")
    refused = await dialog.produce(batch("uncompressed", large), topic="small")
    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert end_of(dialog) == 0


async def test_what_it_takes_is_reserved(dialog: Dialog, monkeypatch: pytest.MonkeyPatch) -> None:
    await dialog.create_topic(compression_type="uncompressed")
    granted: list[int] = []
    reserve = Reading.reserve

    async def counted(self: Reading, size: int) -> None:
        granted.append(size)
        await reserve(self, size)

    monkeypatch.setattr(Reading, "reserve", counted)
    large = [record_batch.Record(bytes(900_000))]
    assert (await dialog.produce(batch("zstd", large))).error_code == 0
    assert max(granted) >= 3 * 900_000
    assert dialog.broker.memory.reads.used == 0


async def test_much_of_one_request_is_written_before_more_is_made(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_00_produce, "RECOMPRESSED_BYTES", 100_000)
    await dialog.create_topic(partitions=6, compression_type="uncompressed")
    waits: list[object] = []
    ended = api_00_produce.ended

    async def counted(ready: object) -> None:
        waits.append(ready)
        await ended(ready)  # type: ignore[arg-type]

    monkeypatch.setattr(api_00_produce, "ended", counted)
    large = [record_batch.Record(bytes(60_000))]
    parts = [(index, batch("zstd", large)) for index in range(6)]
    response = await dialog.ask("Produce", 12, **dialog.produce_fields(*parts))
    assert {each.error_code for each in response.responses[0].partition_responses} == {0}
    assert len(waits) - len(parts) == 6, "each pair, and all of them for the answer"
    assert limits.RECOMPRESSED_BYTES > 1 << 20


@pytest.mark.parametrize("kept", ["gzip", "zstd"])
def test_real_clients_read_what_was_recompressed(shared_server: BrokerProcess, kept: str) -> None:
    topic, servers = f"recompressed-{kept}", {"bootstrap.servers": shared_server.kafka}
    admin = AdminClient(servers)
    asked = NewTopic(topic, 1, config={"compression.type": kept})
    admin.create_topics([asked])[topic].result()
    values = [b"value %d" % n * 50 for n in range(100)]
    options = {"compression.type": "lz4", "enable.idempotence": True, "linger.ms": 50}
    producer = confluent_kafka.Producer({**servers, **options})
    for value in values:
        producer.produce(topic, value, b"k")
    assert producer.flush(DEADLINE_SECONDS) == 0
    python = KafkaProducer(bootstrap_servers=shared_server.kafka, compression_type="snappy")
    python.send(topic, b"last", b"k").get(DEADLINE_SECONDS)
    python.close()

    reader = confluent_kafka.Consumer(
        {**servers, "group.id": topic, "auto.offset.reset": "earliest", "check.crcs": True}
    )
    reader.subscribe([topic])
    found = []
    while len(found) < 101:
        message = reader.poll(DEADLINE_SECONDS)
        assert message is not None
        assert message.error() is None
        found.append(message.value())
    reader.close()
    assert found == [*values, b"last"]

    consumer = KafkaConsumer(bootstrap_servers=shared_server.kafka)
    place = TopicPartition(topic, 0)
    consumer.assign([place])
    consumer.seek(place, 90)
    seen: list[bytes] = []
    while len(seen) < 11:
        for each in consumer.poll(timeout_ms=DEADLINE_SECONDS * 1000).values():
            seen += [record.value for record in each]
    consumer.close()
    assert seen == found[90:]
