"""What outlasts the broker."""

from __future__ import annotations

from collections.abc import Callable

import pulsar
import pytest

from broker_process import BrokerProcess
from pulsar_messages import RECEIVE_MS, expect_nothing, numbered, payloads, publish, receive

Connect = Callable[[str], pulsar.Client]
SHARED = pulsar.ConsumerType.Shared


def crash(server: BrokerProcess, client: pulsar.Client) -> None:
    """Let broker and client end, in this order, and start the broker again."""
    server.kill9()
    client.shutdown()  # It would come back and hold its subscriptions.
    server.start()


def test_cursors_outlast_a_restart(server: BrokerProcess, connect: Connect, topic: str) -> None:
    client = connect(server.pulsar)
    options = {"consumer_type": SHARED, "batch_index_ack_enabled": True}
    consumer = client.subscribe(topic, "sub", **options)
    producer = client.create_producer(topic, batching_enabled=True, batching_max_messages=10)
    publish(producer, numbered(100))
    for index, message in enumerate(receive(consumer, 100)):
        if index % 7:
            consumer.acknowledge(message)
    client.close()
    server.restart()
    again = connect(server.pulsar).subscribe(topic, "sub", **options)
    assert payloads(receive(again, 15)) == numbered(100)[::7]
    expect_nothing(again)


def test_published_messages_outlast_a_crash(
    server: BrokerProcess, connect: Connect, topic: str
) -> None:
    client = connect(server.pulsar)
    client.subscribe(topic, "sub")
    publish(client.create_producer(topic), numbered(50))
    crash(server, client)
    assert payloads(receive(connect(server.pulsar).subscribe(topic, "sub"), 50)) == numbered(50)


def test_a_client_reports_damage_and_goes_on(
    server: BrokerProcess, topic: str, capfd: pytest.CaptureFixture[str]
) -> None:
    client = pulsar.Client(server.pulsar)
    producer = client.create_producer(topic, batching_enabled=False)
    for payload in numbered(3):
        producer.send(payload)
    client.close()
    (segment,) = server.data_folder.glob("topics/*/0/*.log")
    data = segment.read_bytes()
    segment.write_bytes(data.replace(b"message 1", b"massage 1"))

    client = pulsar.Client(server.pulsar)
    consumer = client.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest)
    received = receive(consumer, 2)
    for message in received:
        consumer.acknowledge(message)
    client.close()
    assert payloads(received) == [b"message 0", b"message 2"]
    assert "checksum" in "".join(capfd.readouterr()).lower()
    assert "messages 1 to 1 are damaged" in server.log

    client = pulsar.Client(server.pulsar)
    expect_nothing(client.subscribe(topic, "s"))
    client.close()


def test_clients_come_back_by_themselves(
    server: BrokerProcess, connect: Connect, topic: str
) -> None:
    client = connect(server.pulsar)
    consumer = client.subscribe(topic, "sub")
    producer = client.create_producer(topic)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    producer.send(b"before")
    consumer.acknowledge(consumer.receive(RECEIVE_MS))
    assert reader.read_next(RECEIVE_MS).data() == b"before"
    server.restart()
    producer.send(b"after")
    assert reader.read_next(RECEIVE_MS).data() == b"after"
    received = [consumer.receive(RECEIVE_MS).data()]
    if received == [b"before"]:  # The acknowledgement may have been on its way.
        received.append(consumer.receive(RECEIVE_MS).data())
    assert received[-1] == b"after"


@pytest.mark.parametrize("kill", [False, True], ids=["restart", "kill -9"])
def test_an_unsubscribed_subscription_stays_gone(
    server: BrokerProcess, connect: Connect, topic: str, kill: bool
) -> None:
    client = connect(server.pulsar)
    consumer = client.subscribe(topic, "sub")
    client.create_producer(topic).send(b"unread")
    consumer.unsubscribe()
    if kill:
        crash(server, client)
    else:
        server.restart()
    expect_nothing(connect(server.pulsar).subscribe(topic, "sub"))


def test_a_seek_outlasts_a_crash(server: BrokerProcess, connect: Connect, topic: str) -> None:
    client = connect(server.pulsar)
    consumer = client.subscribe(topic, "sub")
    ids = publish(client.create_producer(topic), numbered(20))
    consumer.acknowledge_cumulative(receive(consumer, 20)[-1])
    consumer.seek(ids[4])
    crash(server, client)
    # The broker's seek is inclusive; leaving the first out was the dead client's part.
    assert payloads(receive(connect(server.pulsar).subscribe(topic, "sub"), 16)) == numbered(16, 4)


def test_generated_producer_names_are_never_given_twice(
    server: BrokerProcess, connect: Connect, topic: str
) -> None:
    names = set()
    for _ in range(2):
        client = connect(server.pulsar)
        names.add(client.create_producer(topic).producer_name())
        client.close()
        server.restart()
    assert len(names) == 2
