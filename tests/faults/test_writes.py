"""Writes that the disk holds up or refuses: nobody else waits, nothing acknowledged is lost, and it
goes on by itself."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pulsar
import pytest
from confluent_kafka import KafkaError, Message, Producer

from faulty_broker import CHANGING, NAMING, SYNCING, FaultyBroker
from patience import PATIENCE_SECONDS, lasted
from penstock.clients.kafka.record_batch import Record, encode_batch
from stand import Stand
from wire_clients import CLIENTS, KafkaWire, RefusedError, WireClient, kafka_produce_fields

MEGABYTE = bytes(1 << 20)
REFUSED_SECONDS = 10


@pytest.fixture
def broker(stand: Stand) -> FaultyBroker:
    broker = FaultyBroker(stand.fresh_folder(), "--segment-bytes", "1MiB")
    stand.add(broker)
    return broker


@pytest.fixture
def clients(broker: FaultyBroker) -> Iterator[dict[str, WireClient]]:
    with_topics = {}
    for protocol, made in CLIENTS.items():
        KafkaWire(broker.kafka, f"to-{protocol}").create_topic()
        with_topics[protocol] = made(getattr(broker, protocol), f"to-{protocol}")
    yield with_topics
    for client in with_topics.values():
        client.close()


def read_all(client: WireClient, count: int) -> list[bytes]:
    values: list[bytes] = []
    while len(values) < count:
        values += [value for _, value in client.read(len(values))]
    return values


def test_a_slow_disk_holds_the_loop_up_at_no_call(
    broker: FaultyBroker, clients: dict[str, WireClient]
) -> None:
    """Fault: every call of the writing half takes 10 ms, while segments fill and are left.

    Bar: none of them is made on the event loop's thread."""
    broker.disk.reset()
    with broker.disk.slow(10, *CHANGING, *SYNCING, *NAMING):
        for _ in range(3):
            for client in clients.values():
                client.produce(MEGABYTE[: 600 << 10])
        kafka = clients["kafka"]
        assert isinstance(kafka, KafkaWire)
        batch = encode_batch([Record(b"acks 1", timestamp_ms=1)])
        kafka.ask("Produce", 9, **kafka_produce_fields("to-kafka", batch, acks=1))
    assert broker.disk.loop_waits() == 0, broker.disk.figures()


@pytest.mark.parametrize("error", ["ENOSPC", "EMFILE"])
def test_a_write_that_fails_is_refused_at_once_and_the_next_succeeds(
    stand: Stand, broker: FaultyBroker, clients: dict[str, WireClient], error: str
) -> None:
    """Fault: the disk takes half of a write, and then nothing.

    Bar: refused long before a client gives up, in its own words, and no restart is needed."""
    stand.allow("a write failed", "writes succeed again")
    for protocol, client in clients.items():
        client.produce(b"before")
        with broker.disk.fail(error, half=error == "ENOSPC"):
            began = time.monotonic()
            with pytest.raises(RefusedError) as refused:
                client.produce(b"refused")
            assert not lasted(began, REFUSED_SECONDS)
            assert str(broker.data_folder) not in str(refused.value)
        client.close()
        again = clients[protocol] = CLIENTS[protocol](getattr(broker, protocol), f"to-{protocol}")
        again.produce(b"after")
        assert read_all(again, 2) == [b"before", b"after"]


def test_real_clients_get_everything_through_a_full_disk_in_order(
    stand: Stand, broker: FaultyBroker
) -> None:
    """Fault: the disk is full for a second in the middle of a stream of messages.

    Bar: the clients of Kafka and Pulsar send again by themselves: all is there, once, in order."""
    stand.allow("a write failed", "writes succeed again")
    sent = [b"%d" % number for number in range(300)]
    errors: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        errors.append(error)

    kafka = Producer(
        {"bootstrap.servers": broker.kafka, "enable.idempotence": True, "linger.ms": 0}
    )
    client = pulsar.Client(broker.pulsar)
    producer = client.create_producer("to-pulsar", batching_enabled=False)
    results: list[pulsar.Result] = []
    done = threading.Event()

    def receipt(result: pulsar.Result, _: pulsar.MessageId) -> None:
        results.append(result)
        if len(results) == len(sent):
            done.set()

    def send(values: list[bytes]) -> None:
        for value in values:
            kafka.produce("to-kafka", value, on_delivery=delivered)
            producer.send_async(value, receipt)
            time.sleep(0.002)
        kafka.poll(0)

    send(sent[:100])
    with broker.disk.fail("ENOSPC", half=True):
        send(sent[100:200])
        time.sleep(1)
    send(sent[200:])
    assert kafka.flush(PATIENCE_SECONDS) == 0
    assert done.wait(PATIENCE_SECONDS)
    client.close()
    assert errors == [None] * len(sent)
    assert set(results) == {pulsar.Result.Ok}
    assert read_all(KafkaWire(broker.kafka, "to-kafka"), len(sent)) == sent
    assert read_all(KafkaWire(broker.kafka, "to-pulsar"), len(sent)) == sent


def test_a_topic_whose_flush_failed_is_reopened_by_a_command(
    stand: Stand, broker: FaultyBroker
) -> None:
    """Fault: one flush fails.

    Bar: the topic takes no writes, says so, and takes them again after `penstock topic reopen`."""
    stand.allow("a flush failed", "open again")
    client = KafkaWire(broker.kafka, "orders")
    client.create_topic()
    client.produce(b"before")
    with broker.disk.fail("EIO", "fdatasync", times=1), pytest.raises(RefusedError):
        client.produce(b"refused")
    with pytest.raises(RefusedError):
        client.produce(b"still refused")
    assert client.read(0) == [(0, b"before")]
    reopen = [sys.executable, "-m", "penstock", "topic", "reopen", "orders", "-s", broker.kafka]
    for said in ("reopened 1 partition", "nothing was to be reopened"):
        done = subprocess.run(reopen, capture_output=True, text=True, check=True, timeout=60)
        assert said in done.stdout
    client.produce(b"after")
    values = [value for _, value in client.read(0)]
    assert (values[0], values[-1]) == (b"before", b"after")
