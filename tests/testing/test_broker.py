"""What a broker inside the process gives, and that nothing is left of it."""

from __future__ import annotations

import asyncio
import math
import os
import socket
import threading
import time
from pathlib import Path

import confluent_kafka
import pulsar
import pytest
from apache_iggy import IggyClient, Partitioning, SendMessage

from patience import PATIENCE_SECONDS
from penstock.broker.errors import TopicExistsError
from penstock.testing import Penstock, Record
from penstock.testing import folder as folders

QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)


def kafka_producer(broker: Penstock, **settings: object) -> confluent_kafka.Producer:
    return confluent_kafka.Producer({"bootstrap.servers": broker.kafka, "log_level": 0, **settings})


def write_with_kafka(broker: Penstock, topic: str, value: bytes) -> None:
    failures: list[object] = []
    producer = kafka_producer(broker)
    producer.produce(
        topic,
        value,
        key=b"k",
        headers={"h": b"1"},
        on_delivery=lambda e, _: e and failures.append(e),
    )
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert not failures


def write_with_pulsar(broker: Penstock, topic: str, value: bytes) -> None:
    client = pulsar.Client(broker.pulsar, logger=QUIET)
    client.create_producer(topic).send(value, partition_key="k", properties={"h": "1"})
    client.close()


async def write_with_iggy(broker: Penstock, topic: str, value: bytes) -> None:
    client = IggyClient.from_connection_string(f"iggy://iggy:iggy@{broker.iggy}")
    await client.connect()
    await client.send_messages("default", topic, Partitioning.balanced(), [SendMessage(value)])


async def test_records_of_all_protocols_are_read(inside: Penstock, topic: str) -> None:
    await asyncio.to_thread(write_with_kafka, inside, topic, b"from Kafka")
    await asyncio.to_thread(write_with_pulsar, inside, topic, b"from Pulsar")
    await write_with_iggy(inside, topic, b"from Iggy")
    records = await inside.wait_for_async(topic, 3, timeout=60)
    assert [each.value for each in records] == [b"from Kafka", b"from Pulsar", b"from Iggy"]
    assert [each.key for each in records] == [b"k", b"k", None]
    assert [each.headers for each in records[:2]] == [(("h", b"1"),)] * 2
    assert [each.offset for each in records] == [0, 1, 2]
    assert inside.records(topic) == records


def test_what_is_produced_is_read_by_a_consumer_group(inside: Penstock, topic: str) -> None:
    written = inside.produce(topic, "value", key="key", headers={"a": "1", "b": None})
    assert inside.records(topic) == [written]
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": inside.kafka, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    try:
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None
        assert (message.key(), message.value()) == (b"key", b"value")
        assert message.headers() == [("a", b"1"), ("b", None)]
        assert message.timestamp()[1] == written.timestamp_ms
    finally:
        consumer.close()


def test_partitions_are_chosen_as_kafka_does(inside: Penstock, topic: str) -> None:
    inside.create_topic(topic, partitions=3)
    sent = {inside.produce(topic, None, key=f"key-{number}").partition for number in range(20)}
    assert sent == {0, 1, 2}
    assert inside.produce(topic, "chosen", partition=2).partition == 2
    producer = kafka_producer(inside, partitioner="murmur2_random")
    producer.produce(topic, b"again", key=b"key-7")
    assert producer.flush(PATIENCE_SECONDS) == 0
    same = [each for each in inside.records(topic) if each.key == b"key-7"]
    assert len(same) == 2
    assert len({each.partition for each in same}) == 1


def test_each_protocols_name_of_a_topic_is_understood(inside: Penstock, topic: str) -> None:
    inside.produce(f"persistent://public/shop/{topic}", "one")
    inside.produce(f"public/shop/{topic}", "two")
    inside.produce(f"shop/{topic}", "three")
    assert len(inside.records(f"shop.{topic}")) == 3
    assert f"shop.{topic}" in inside.topics()
    inside.delete_namespace("shop")
    assert inside.records(f"shop.{topic}") == []
    assert f"shop.{topic}" not in inside.topics()


def test_a_topic_is_made_and_deleted(inside: Penstock, topic: str) -> None:
    inside.create_topic(topic)
    with pytest.raises(TopicExistsError):
        inside.create_topic(topic)
    inside.produce(topic, "gone")
    inside.delete_topic(topic)
    inside.delete_topic(topic)
    assert inside.records(topic) == []
    assert inside.produce(topic, "anew").offset == 0


def test_waiting_says_what_was_there_instead(inside: Penstock, topic: str) -> None:
    with pytest.raises(AssertionError, match="nothing is there, and the topics are: "):
        inside.wait_for(topic, timeout=0.01)
    for number in range(12):
        inside.produce(topic, f"value-{number}", key="k")
    with pytest.raises(AssertionError) as failed:
        inside.wait_for(topic, 2, where=lambda each: each.value == b"value-3", timeout=0.01)
    said = str(failed.value)
    assert f"waited 0.01 s for 2 records for which the condition holds in '{topic}'" in said
    assert "there: 1 record, and 11 records besides" in said
    assert "0@11 key=b'k' value=b'value-11'" in said
    assert "value-1'" not in said


def test_waiting_ends_when_it_comes(inside: Penstock, topic: str) -> None:
    later = threading.Timer(0.05, inside.produce, (topic, "second"))
    inside.produce(topic, "first")
    later.start()
    found = inside.wait_for(topic, where=lambda each: each.value == b"second", timeout=30)
    assert [each.value for each in found] == [b"second"]
    later.join()


def test_many_brokers_do_not_know_one_another() -> None:
    with Penstock() as one, Penstock() as other, Penstock(default_partitions=3) as third:
        assert len({each.kafka for each in (one, other, third)}) == 3
        one.produce("orders", "one")
        third.produce("orders", "three", partition=2)
        assert other.topics() == []
        assert [each.value for each in third.records("orders")] == [b"three"]


async def test_an_event_loop_goes_on_meanwhile(topic: str) -> None:
    async with Penstock() as broker:
        waiting = asyncio.ensure_future(broker.wait_for_async(topic, timeout=30))
        await asyncio.sleep(0)
        broker.produce(topic, "seen")
        assert [each.value for each in await waiting] == [b"seen"]
        with pytest.raises(AssertionError):
            await broker.wait_for_async(topic, 2, timeout=0.01)


def test_a_broker_runs_once_at_a_time() -> None:
    broker = Penstock()
    with pytest.raises(RuntimeError, match="does not run"):
        broker.kafka  # noqa: B018  # reading it is the test
    broker.start()
    with pytest.raises(RuntimeError, match="runs already"):
        broker.start()
    broker.stop()
    broker.stop()
    with broker:
        assert broker.topics() == []


def test_a_folder_that_is_given_stays(tmp_path: Path) -> None:
    with Penstock(data_folder=tmp_path, flush="acknowledged") as broker:
        broker.produce("orders", "kept")
    with Penstock(data_folder=tmp_path) as broker:
        assert [each.value for each in broker.records("orders")] == [b"kept"]


def test_a_start_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    before = threads()
    with pytest.raises(Exception, match="can't be used"):
        Penstock(data_folder=tmp_path / "data").start()
    assert threads() == before


def test_topics_may_have_to_be_made_first() -> None:
    with Penstock(auto_create_topics=False) as broker:
        producer = kafka_producer(broker, **{"message.timeout.ms": 500})
        outcome: list[object] = []
        producer.produce("orders", b"1", on_delivery=lambda error, _: outcome.append(error))
        producer.flush(PATIENCE_SECONDS)
        assert outcome[0] is not None
        assert broker.topics() == []


def threads() -> set[str]:
    """Those that stay are of the conversions, of which all brokers share two."""
    return {each.name for each in threading.enumerate() if not each.name.startswith("conversion")}


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_fifty_brokers_leave_nothing() -> None:
    def cycle() -> None:
        with Penstock() as broker:
            host, port = broker.kafka.split(":")
            # A client that is still there, and holds half a request.
            left = socket.create_connection((host, int(port)))
            left.sendall(b"\0\0\0\x40\0\x03")
            broker.produce("orders", "one")
            broker.fail_next("produce", "NOT_LEADER_OR_FOLLOWER")
        left.close()

    cycle()
    before = threads(), descriptors()
    grown = []
    for _ in range(5):
        resident = resident_kib()
        for _ in range(10):
            cycle()
        grown.append(resident_kib() - resident)
    assert threads() == before[0]
    assert descriptors() <= before[1]
    assert min(grown) < 4_000, "what a broker leaves is left by every one"
    assert not list(folders._base().glob(f"penstock-testing-*{os.getpid()}"))


def resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def test_a_fork_leaves_its_parents_broker_alone(inside: Penstock, topic: str) -> None:
    inside.produce(topic, "one")
    child = os.fork()
    if child == 0:
        try:
            inside.stop()
            inside.records(topic)
        except RuntimeError:
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert len(inside.records(topic)) == 1


def test_a_record_is_shown_for_people() -> None:
    record = Record(0, 1, 2, None, b"x" * 100, (("h", None),))
    assert str(record) == f"0@1 value={b'x' * 60!r}... (100 bytes) headers={{'h': None}}"


def test_a_start_after_the_first_takes_less_than_50_ms() -> None:
    best = math.inf
    for _ in range(40):  # A busy machine may take longer many times, and a slow start always does.
        began = time.perf_counter()
        with Penstock():
            best = min(best, time.perf_counter() - began)
        if best < 0.05:
            return
    pytest.fail(f"the quickest of 40 starts took {1000 * best:.0f} ms")
