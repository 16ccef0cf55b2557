"""Goal: librdkafka, in confluent-kafka, works unchanged. Method: a broker as users run it."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType

from broker_process import BrokerProcess
from patience import PATIENCE_SECONDS

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
DEADLINE_SECONDS = PATIENCE_SECONDS


def produce(server: BrokerProcess, topic: str, count: int, **options: Any) -> None:
    producer = Producer({"bootstrap.servers": server.kafka, **options})
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    for number in range(count):
        producer.produce(
            topic,
            key=b"key-%d" % number,
            value=None if number % 10 == 9 else b"value-%d" % number,
            headers=[("number", b"%d" % number), ("empty", b""), ("null", None)],
            on_delivery=delivered,
        )
    assert producer.flush(DEADLINE_SECONDS) == 0
    assert not failures


@contextmanager
def consumer(server: BrokerProcess, group: str, **options: Any) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": server.kafka,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **options,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def take(consumer: Consumer, count: int) -> list[Message]:
    messages: list[Message] = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(messages) < count:
        assert time.monotonic() < deadline, f"{len(messages)} of {count}"
        message = consumer.poll(0.5)
        if message is not None:
            assert message.error() is None, message.error()
            messages.append(message)
    return messages


def until(condition: Callable[[], bool], *consumers: Consumer) -> None:
    """Poll consumers, whose rebalances happen in polls, until something is so."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        for each in consumers:
            each.poll(0.1)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("idempotent", [False, True])
def test_every_codec_goes_in_and_out(
    shared_server: BrokerProcess, codec: str, idempotent: bool
) -> None:
    topic = f"confluent-{codec}-{idempotent}"
    options = {"compression.type": codec, "enable.idempotence": idempotent}
    produce(shared_server, topic, 500, **options)
    with consumer(shared_server, f"group-{topic}") as reader:
        reader.subscribe([topic])
        messages = take(reader, 500)
    assert [message.offset() for message in messages] == list(range(500))
    assert [message.key() for message in messages] == [b"key-%d" % n for n in range(500)]
    assert messages[9].value() is None
    assert messages[10].value() == b"value-10"
    assert messages[10].headers() == [("number", b"10"), ("empty", b""), ("null", None)]


def test_two_consumers_share_and_take_over(shared_server: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": shared_server.kafka})
    admin.create_topics([NewTopic("confluent-shared", 4)])["confluent-shared"].result()
    options = {"session.timeout.ms": 30_000, "heartbeat.interval.ms": 200}
    with consumer(shared_server, "sharing", **options) as first:
        first.subscribe(["confluent-shared"])
        until(lambda: len(first.assignment()) == 4, first)
        with consumer(shared_server, "sharing", **options) as second:
            second.subscribe(["confluent-shared"])
            until(lambda: len(second.assignment()) == 2 == len(first.assignment()), first, second)
            held = {part.partition for each in (first, second) for part in each.assignment()}
            assert held == {0, 1, 2, 3}
            described = admin.describe_consumer_groups(["sharing"])["sharing"].result()
            assert (described.state.name, len(described.members)) == ("STABLE", 2)
        until(lambda: len(first.assignment()) == 4, first)


def test_a_cooperative_group_shares_step_by_step(shared_server: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": shared_server.kafka})
    admin.create_topics([NewTopic("confluent-steps", 4)])["confluent-steps"].result()
    options = {
        "partition.assignment.strategy": "cooperative-sticky",
        "heartbeat.interval.ms": 200,
        "session.timeout.ms": 30_000,
    }
    with (
        consumer(shared_server, "steps", **options) as first,
        consumer(shared_server, "steps", **options) as second,
    ):
        first.subscribe(["confluent-steps"])
        until(lambda: len(first.assignment()) == 4, first)
        second.subscribe(["confluent-steps"])
        until(lambda: len(second.assignment()) == 2 == len(first.assignment()), first, second)


def test_a_static_member_comes_back_to_its_place(shared_server: BrokerProcess) -> None:
    produce(shared_server, "confluent-static", 10)
    options = {"group.instance.id": "one", "session.timeout.ms": 30_000}
    for _ in range(2):
        with consumer(shared_server, "static", **options) as reader:
            reader.subscribe(["confluent-static"])
            take(reader, 10)


def test_a_group_goes_on_where_it_was_after_a_restart(server: BrokerProcess) -> None:
    produce(server, "resumed", 20)
    with consumer(server, "resumers") as reader:
        reader.subscribe(["resumed"])
        last = take(reader, 7)[-1]
        reader.commit(last, asynchronous=False)
    server.restart()
    produce(server, "resumed", 1)
    with consumer(server, "resumers") as reader:
        reader.subscribe(["resumed"])
        assert [message.offset() for message in take(reader, 14)] == list(range(7, 21))


def test_clients_that_are_connected_live_through_a_restart(server: BrokerProcess) -> None:
    soon = {"reconnect.backoff.max.ms": 200}
    producer = Producer({"bootstrap.servers": server.kafka, "enable.idempotence": True, **soon})
    with consumer(server, "survivors", **{"session.timeout.ms": 30_000}, **soon) as reader:
        producer.produce("lasting", b"before")
        assert producer.flush(DEADLINE_SECONDS) == 0
        reader.subscribe(["lasting"])
        (message,) = take(reader, 1)
        assert message.value() == b"before"
        reader.commit(message, asynchronous=False)
        server.restart()
        producer.produce("lasting", b"after")
        assert producer.flush(DEADLINE_SECONDS) == 0
        assert take(reader, 1)[0].value() == b"after"


def test_topics_are_administered(shared_server: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": shared_server.kafka})
    new = NewTopic("confluent-admin", 2, 1, config={"segment.bytes": "2000000"})
    admin.create_topics([new])["confluent-admin"].result()
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topics([new])["confluent-admin"].result()
    grown = admin.create_partitions([NewPartitions("confluent-admin", 3)])
    grown["confluent-admin"].result()
    described = admin.list_topics("confluent-admin").topics["confluent-admin"]
    assert sorted(described.partitions) == [0, 1, 2]
    resource = ConfigResource(ResourceType.TOPIC, "confluent-admin")
    assert admin.describe_configs([resource])[resource].result()["segment.bytes"].value == "2000000"
    assert len(admin.describe_cluster().result().nodes) == 1
    flushed = NewTopic("confluent-flushed", 1, 1, config={"flush.ms": "1000"})
    with pytest.raises(KafkaException, match=r"flush\.ms is 1000.* not in effect") as refusal:
        admin.create_topics([flushed])["confluent-flushed"].result()
    assert refusal.value.args[0].code() == KafkaError.INVALID_CONFIG
    admin.delete_topics(["confluent-admin"])["confluent-admin"].result()
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        admin.delete_topics(["confluent-admin"])["confluent-admin"].result()


def test_groups_are_administered(shared_server: BrokerProcess) -> None:
    produce(shared_server, "confluent-groups", 3)
    with consumer(shared_server, "administered") as reader:
        reader.subscribe(["confluent-groups"])
        reader.commit(take(reader, 3)[-1], asynchronous=False)
    admin = AdminClient({"bootstrap.servers": shared_server.kafka})
    listed = admin.list_consumer_groups().result()
    assert "administered" in {group.group_id for group in listed.valid}
    assert listed.errors == []
    admin.delete_consumer_groups(["administered"])["administered"].result()
    with consumer(shared_server, "administered") as reader:
        (part,) = reader.committed([TopicPartition("confluent-groups", 0)])
        assert part.offset < 0


def test_offsets_are_found_by_time(shared_server: BrokerProcess) -> None:
    producer = Producer({"bootstrap.servers": shared_server.kafka})
    for timestamp in (1_000, 2_000, 3_000):
        producer.produce("confluent-times", b"value", timestamp=timestamp)
        assert producer.flush(DEADLINE_SECONDS) == 0
    with consumer(shared_server, "times") as reader:
        assert reader.get_watermark_offsets(TopicPartition("confluent-times", 0)) == (0, 3)
        for timestamp, offset in ((0, 0), (1_001, 1), (3_000, 2)):
            asked = TopicPartition("confluent-times", 0, timestamp)
            # What finds a record by its time may have to be compiled first.
            (found,) = reader.offsets_for_times([asked], timeout=100)
            assert found.offset == offset


def test_an_offset_out_of_range_is_told(shared_server: BrokerProcess) -> None:
    produce(shared_server, "confluent-range", 1)
    with consumer(shared_server, "range", **{"auto.offset.reset": "error"}) as reader:
        reader.assign([TopicPartition("confluent-range", 0, 100)])
        message = reader.poll(DEADLINE_SECONDS)
        assert message is not None
        assert message.error().code() == KafkaError._AUTO_OFFSET_RESET


def test_messages_that_are_too_large_are_refused(shared_server: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": shared_server.kafka})
    small = NewTopic("confluent-small", 1, config={"max.message.bytes": "1000"})
    admin.create_topics([small])["confluent-small"].result()
    producer = Producer({"bootstrap.servers": shared_server.kafka})
    errors: list[KafkaError | None] = []
    producer.produce("confluent-small", bytes(2000), on_delivery=lambda e, _: errors.append(e))
    assert producer.flush(DEADLINE_SECONDS) == 0
    assert errors[0] is not None
    assert errors[0].code() == KafkaError.MSG_SIZE_TOO_LARGE


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_kcat_writes_reads_and_lists(shared_server: BrokerProcess) -> None:
    def kcat(*arguments: str, stdin: str = "") -> str:
        command = ["kcat", "-b", shared_server.kafka, *arguments]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=True, timeout=60
        ).stdout

    kcat("-P", "-t", "kcat", "-K:", "-z", "lz4", stdin="a:1\nb:2\n")
    assert kcat("-C", "-t", "kcat", "-e", "-q", "-K:") == "a:1\nb:2\n"
    assert 'topic "kcat" with 1 partitions' in kcat("-L", "-t", "kcat")


def test_large_answers_come_from_the_file_and_are_what_was_sent(
    shared_server: BrokerProcess,
) -> None:
    topic = "large-answers"
    block = random.Random(5).randbytes(1 << 20)
    values = [block[n * 301 : n * 301 + 1_000 * (1 + n % 3)] for n in range(3_000)]
    producer = Producer({"bootstrap.servers": shared_server.kafka, "linger.ms": 20})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(DEADLINE_SECONDS) == 0
    for minimum in (1, 500_000):
        options = {"check.crcs": True, "fetch.min.bytes": minimum, "fetch.wait.max.ms": 50}
        with consumer(shared_server, f"{topic}-{minimum}", **options) as reader:
            reader.assign([TopicPartition(topic, 0, 0)])
            assert [message.value() for message in take(reader, 3_000)] == values
