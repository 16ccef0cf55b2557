"""Goal: with LogAppendTime each message has the broker's time, for readers of every kind (KIP-32).

Method: sessions without a socket, the batches of other protocols straight into the partition; two
real clients on a broker as users run it.
"""

from __future__ import annotations

import time

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from broker_process import BrokerProcess
from kafka_dialog import TOPIC, Dialog
from message_sets import Message, message_set, read
from patience import PATIENCE_SECONDS
from penstock import records
from penstock.broker.topics.partition import Partition
from penstock.clients.kafka import record_batch
from penstock.clients.kafka.record_batch import encode_batch
from penstock.kafka.wire import ErrorCode, api
from penstock.log.header import (
    ATTRIBUTE_LOG_APPEND_TIME,
    HEADER_SIZE,
    Magic,
    build_header,
    checksum_matches,
    read_header,
    stamp_append_time,
)
from stored_batches import Record, entry, iggy_body, join, metadata

APPENDED = {"message_timestamp_type": "LogAppendTime"}
LONG_AGO, FAR_AHEAD = 1_000, 4_000_000_000_000
DEADLINE_SECONDS = PATIENCE_SECONDS


def partition(dialog: Dialog) -> Partition:
    topic = dialog.broker.topics.by_kafka_name(TOPIC)
    assert topic is not None
    return topic.partition(0)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def batch(*timestamps: int) -> bytearray:
    return encode_batch([record_batch.Record(b"value", timestamp_ms=each) for each in timestamps])


def numbered() -> bytearray:
    """The first batch of an idempotent producer."""
    body = batch(LONG_AGO)[HEADER_SIZE:]
    times = {"base_timestamp": LONG_AGO, "max_timestamp": LONG_AGO}
    owner = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
    return build_header(Magic.KAFKA, body, record_count=1, **times, **owner) + body


async def test_a_batch_has_the_time_at_which_it_is_appended(dialog: Dialog) -> None:
    await dialog.create_topic(**APPENDED)
    sent, before = batch(LONG_AGO, LONG_AGO + 7), now_ms()
    result = await dialog.produce(bytearray(sent))
    assert result.error_code == 0
    assert before <= result.log_append_time_ms <= now_ms()
    stored = bytes((await dialog.fetch(0)).records)
    header = read_header(stored)
    assert checksum_matches(stored)
    assert header.attributes == ATTRIBUTE_LOG_APPEND_TIME
    assert header.max_timestamp == result.log_append_time_ms
    assert header.base_timestamp == LONG_AGO
    assert stored[HEADER_SIZE:] == sent[HEADER_SIZE:]


async def test_no_time_of_a_producer_is_too_far_ahead(dialog: Dialog) -> None:
    await dialog.create_topic(**APPENDED, message_timestamp_after_max_ms="1")
    result = await dialog.produce(batch(FAR_AHEAD))
    assert result.error_code == 0
    assert result.log_append_time_ms <= now_ms()


async def test_a_producer_gives_no_time_of_the_broker(dialog: Dialog) -> None:
    await dialog.create_topic(**APPENDED)
    marked = batch(LONG_AGO)
    stamp_append_time([marked], LONG_AGO)
    result = await dialog.produce(marked)
    assert (result.error_code, result.log_append_time_ms) == (ErrorCode.INVALID_TIMESTAMP, -1)
    assert partition(dialog).end_offset == 0


async def test_what_is_sent_again_keeps_its_time(dialog: Dialog) -> None:
    await dialog.create_topic(**APPENDED)
    first = await dialog.produce(numbered())
    again = await dialog.produce(numbered())
    assert (first.error_code, again.error_code, again.base_offset) == (0, 0, 0)
    assert again.log_append_time_ms == -1
    stored = read_header(bytes((await dialog.fetch(0)).records))
    assert stored.max_timestamp == first.log_append_time_ms
    assert stored.producer_id == 5


async def test_a_change_holds_for_what_is_appended_from_then_on(dialog: Dialog) -> None:
    await dialog.create_topic()
    types = api("IncrementalAlterConfigs").request
    for value in ("LogAppendTime", "CreateTime"):
        change = types.AlterableConfig(
            name="message.timestamp.type", config_operation=0, value=value
        )
        resource = types.AlterConfigsResource(
            resource_type=2, resource_name=TOPIC, configs=[change]
        )
        response = await dialog.ask("IncrementalAlterConfigs", resources=[resource])
        assert response.responses[0].error_code == 0
        result = await dialog.produce(batch(LONG_AGO))
        assert (result.log_append_time_ms != -1) == (value == "LogAppendTime")


async def test_offsets_are_found_by_the_time_of_appending(dialog: Dialog) -> None:
    await dialog.create_topic(**APPENDED)
    appended = (await dialog.produce(batch(FAR_AHEAD, LONG_AGO))).log_append_time_ms
    request = api("ListOffsets").request
    found = []
    for timestamp in (appended, appended + 1):
        part = request.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topic = request.ListOffsetsTopic(name=TOPIC, partitions=[part])
        answer = await dialog.ask("ListOffsets", 7, replica_id=-1, topics=[topic])
        result = answer.topics[0].partitions[0]
        found.append((result.offset, result.timestamp))
    assert found == [(0, appended), (-1, -1)]


async def test_old_clients_hear_and_see_it(dialog: Dialog) -> None:
    await dialog.create_topic(**APPENDED)
    old = bytearray(message_set(1, [Message(b"one", None, LONG_AGO), Message(b"two", None, 5)]))
    result = await dialog.produce(old, version=2)
    assert result.error_code == 0
    assert result.log_append_time_ms > LONG_AGO
    response = await dialog.ask("Fetch", 2, **dialog.fetch_fields((0, 0)))
    seen = bytes(response.responses[0].partitions[0].records)
    assert seen[17] == ATTRIBUTE_LOG_APPEND_TIME
    assert [message.time for _, message in read(seen)] == 2 * [result.log_append_time_ms]


def as_stored(magic: Magic, body: bytes) -> list[bytearray]:
    header = build_header(
        magic, body, record_count=1, base_timestamp=LONG_AGO, max_timestamp=LONG_AGO
    )
    return [header, bytearray(body)]


async def test_what_other_protocols_send_has_it_too(dialog: Dialog) -> None:
    await dialog.create_topic(**APPENDED)
    sent = {
        Magic.PULSAR: entry(metadata(event_time=LONG_AGO), b"value"),
        Magic.IGGY: iggy_body([Record(b"value", time=LONG_AGO)]),
    }
    before = now_ms()
    for magic, body in sent.items():
        owner = partition(dialog)
        await owner.durable(owner.append(as_stored(magic, body)))
    stored = join([*await partition(dialog).read(0, 1 << 20, Magic.PULSAR)])
    assert sent[Magic.PULSAR] in stored, "a reader of the same protocol gets what was sent"
    for offset in (0, 1):
        header = read_header((await dialog.fetch(offset)).records)
        assert header.attributes == ATTRIBUTE_LOG_APPEND_TIME
        assert before <= header.max_timestamp <= now_ms()
        for reader in (Magic.KAFKA, Magic.IGGY, Magic.PULSAR):
            (part, *_) = await partition(dialog).read(offset, 1, reader)
            columns = records.decode(part)
            assert before <= columns.timestamps[0] // 1000 <= now_ms()
            if reader == Magic.KAFKA:
                assert columns.timestamp_types.tolist() == [1]


def test_real_clients_are_given_the_broker_s_time(shared_server: BrokerProcess) -> None:
    topic, servers = "append-time", {"bootstrap.servers": shared_server.kafka}
    asked = NewTopic(topic, 1, config={"message.timestamp.type": "LogAppendTime"})
    admin = AdminClient(servers)
    admin.create_topics([asked])[topic].result()
    before = now_ms()
    reported: list[tuple[int, int]] = []
    producer = Producer(servers)
    producer.produce(
        topic, b"one", timestamp=LONG_AGO, on_delivery=lambda _, m: reported.append(m.timestamp())
    )
    assert producer.flush(DEADLINE_SECONDS) == 0
    python = KafkaProducer(bootstrap_servers=shared_server.kafka)
    metadata = python.send(topic, b"two", timestamp_ms=LONG_AGO).get(DEADLINE_SECONDS)
    python.close()
    ((kind, reported_ms),) = reported
    assert kind == TIMESTAMP_LOG_APPEND_TIME

    reader = Consumer({**servers, "group.id": topic, "auto.offset.reset": "earliest"})
    reader.subscribe([topic])
    messages = []
    while len(messages) < 2:
        message = reader.poll(DEADLINE_SECONDS)
        assert message is not None
        messages.append(message.timestamp())
    reader.close()
    expected = [reported_ms, metadata.timestamp]
    assert messages == [(TIMESTAMP_LOG_APPEND_TIME, each) for each in expected]
    assert before <= expected[0] <= expected[1] <= now_ms()

    consumer = KafkaConsumer(bootstrap_servers=shared_server.kafka)
    place = TopicPartition(topic, 0)
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    (found,) = consumer.poll(timeout_ms=DEADLINE_SECONDS * 1000, max_records=1).values()
    assert (found[0].timestamp_type, found[0].timestamp) == (1, reported_ms)
    consumer.close()
