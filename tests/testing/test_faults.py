"""What real clients do when a test has their requests fail, come late or lose their connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import confluent_kafka
import pulsar
import pytest
from aiokafka import AIOKafkaProducer
from apache_iggy import IggyClient, Partitioning, SendMessage
from confluent_kafka.admin import AdminClient, NewTopic

from patience import PATIENCE_SECONDS, lasted, wait_until
from penstock.testing import Penstock, UnknownNameError

QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)


# Kafka


class Sent:
    """A producer of confluent-kafka, and what became of each of its messages."""

    def __init__(self, broker: Penstock, **settings: object) -> None:
        quick = {"retry.backoff.ms": 5, "reconnect.backoff.ms": 1, "linger.ms": 0, "log_level": 0}
        # A client that begins with its first servers again, as it does where the only one is gone
        # (KIP-899), drops the connection to that one once more, with a message on its way.
        steady = {"metadata.recovery.strategy": "none"}
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.kafka, **quick, **steady, **settings}
        )
        self.outcomes: list[str | None] = []

    def send(self, topic: str, *values: bytes) -> None:
        for value in values:
            self._producer.produce(topic, value, partition=0, on_delivery=self._delivered)
        assert self._producer.flush(PATIENCE_SECONDS) == 0

    def _delivered(self, error: confluent_kafka.KafkaError | None, _message: object) -> None:
        self.outcomes.append(None if error is None else error.name())


@pytest.fixture
def consumer_of(inside: Penstock) -> Callable[..., confluent_kafka.Consumer]:
    def make(group: str) -> confluent_kafka.Consumer:
        return confluent_kafka.Consumer(
            {
                "bootstrap.servers": inside.kafka,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 10,
                "fetch.error.backoff.ms": 10,
                "log_level": 0,
            }
        )

    return make


def values(broker: Penstock, topic: str) -> list[bytes | None]:
    return [each.value for each in broker.records(topic)]


def test_a_producer_tries_again_where_it_may(inside: Penstock, topic: str) -> None:
    inside.create_topic(topic)
    fault = inside.fail_next("produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    sent = Sent(inside)
    sent.send(topic, b"once")
    assert sent.outcomes == [None]
    assert (fault.hits, fault.left) == (2, 0)
    assert values(inside, topic) == [b"once"]


def test_a_producer_gives_up_where_it_must(inside: Penstock, topic: str) -> None:
    inside.fail_next("Produce", "TOPIC_AUTHORIZATION_FAILED")
    refused, taken = Sent(inside), Sent(inside)
    refused.send(topic, b"refused")
    taken.send(topic, b"taken")
    assert refused.outcomes + taken.outcomes == ["TOPIC_AUTHORIZATION_FAILED", None]
    assert values(inside, topic) == [b"taken"]


def test_a_fault_of_a_topic_is_of_no_other(inside: Penstock, topic: str) -> None:
    fault = inside.fail_next("produce", "MESSAGE_TOO_LARGE", topic=f"public/default/{topic}")
    sent = Sent(inside)
    sent.send(f"{topic}-other", b"1")
    assert (sent.outcomes, fault.hits) == ([None], 0)
    sent.send(topic, b"2")
    assert (sent.outcomes[1:], fault.hits) == (["MSG_SIZE_TOO_LARGE"], 1)


def test_a_lost_answer_makes_two_of_one(inside: Penstock, topic: str) -> None:
    inside.create_topic(topic)
    inside.disconnect_next("produce", carried_out=True)
    sent = Sent(inside)
    sent.send(topic, b"twice")
    assert sent.outcomes == [None]
    assert values(inside, topic) == [b"twice", b"twice"]


def test_a_lost_answer_makes_one_where_the_producer_is_idempotent(
    inside: Penstock, topic: str
) -> None:
    inside.create_topic(topic)
    fault = inside.disconnect_next("produce", carried_out=True)
    sent = Sent(inside, **{"enable.idempotence": True})
    sent.send(topic, b"once")
    assert (sent.outcomes, fault.hits) == ([None], 1)
    assert values(inside, topic) == [b"once"]


def test_a_lost_request_is_sent_again(inside: Penstock, topic: str) -> None:
    inside.create_topic(topic)
    fault = inside.disconnect_next("produce")
    sent = Sent(inside)
    sent.send(topic, b"once")
    assert (sent.outcomes, fault.hits) == ([None], 1)
    assert values(inside, topic) == [b"once"]


def test_a_late_request_keeps_its_place(inside: Penstock, topic: str) -> None:
    inside.create_topic(topic)
    sent = Sent(inside, **{"batch.num.messages": 1})
    sent.send(topic, b"0")
    fault = inside.delay_next("produce", 0.2)
    began = time.monotonic()
    sent.send(topic, b"1", b"2", b"3")
    assert lasted(began, 0.2)
    assert fault.hits == 1
    assert values(inside, topic) == [b"0", b"1", b"2", b"3"]


def test_a_producer_that_hears_nothing_is_cut(inside: Penstock, topic: str) -> None:
    inside.create_topic(topic)
    fault = inside.fail_next("produce", "NOT_LEADER_OR_FOLLOWER")
    sent = Sent(inside, acks=0)
    sent.send(topic, b"lost")
    wait_until(lambda: fault.hits == 1)
    wait_until(lambda: sent.send(topic, b"taken") or bool(inside.records(topic)))
    assert b"lost" not in values(inside, topic)


@pytest.mark.parametrize(
    ("request_name", "error"),
    [
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
        ("join_group", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("sync_group", "REBALANCE_IN_PROGRESS"),
        ("offset_fetch", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("list_offsets", "NOT_LEADER_OR_FOLLOWER"),
        ("fetch", "NOT_LEADER_OR_FOLLOWER"),
        ("metadata", "LEADER_NOT_AVAILABLE"),
    ],
)
def test_a_consumer_gets_there(
    inside: Penstock,
    topic: str,
    consumer_of: Callable[..., confluent_kafka.Consumer],
    request_name: str,
    error: str,
) -> None:
    inside.produce(topic, "there")
    fault = inside.fail_next(request_name, error)
    consumer = consumer_of(topic)
    consumer.subscribe([topic])
    try:
        assert until_a_message(consumer).value() == b"there"
        assert fault.hits == 1
    finally:
        consumer.close()


def until_a_message(consumer: confluent_kafka.Consumer) -> confluent_kafka.Message:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            return message
    raise AssertionError("no message came")


def test_a_commit_is_refused(
    inside: Penstock, topic: str, consumer_of: Callable[..., confluent_kafka.Consumer]
) -> None:
    inside.produce(topic, "there")
    consumer = consumer_of(topic)
    consumer.subscribe([topic])
    try:
        message = until_a_message(consumer)
        inside.fail_next("OffsetCommit", "TOPIC_AUTHORIZATION_FAILED", topic=topic)
        with pytest.raises(confluent_kafka.KafkaException) as refused:
            consumer.commit(message, asynchronous=False)
        assert refused.value.args[0].name() == "TOPIC_AUTHORIZATION_FAILED"
        consumer.commit(message, asynchronous=False)
    finally:
        consumer.close()


async def test_aiokafka_tries_again(inside: Penstock, topic: str) -> None:
    inside.create_topic(topic)
    producer = AIOKafkaProducer(bootstrap_servers=inside.kafka, retry_backoff_ms=5)
    await producer.start()
    try:
        fault = inside.fail_next("produce", "NOT_LEADER_OR_FOLLOWER")
        await producer.send_and_wait(topic, b"once")
    finally:
        await producer.stop()
    assert fault.hits == 1
    assert values(inside, topic) == [b"once"]


# Pulsar


@pytest.fixture
def pulsar_client(inside: Penstock) -> pulsar.Client:
    return pulsar.Client(inside.pulsar, logger=QUIET, operation_timeout_seconds=PATIENCE_SECONDS)


def test_a_pulsar_message_is_refused(
    inside: Penstock, topic: str, pulsar_client: pulsar.Client
) -> None:
    producer = pulsar_client.create_producer(topic)
    inside.fail_next("SEND", "ChecksumError", topic=topic)
    with pytest.raises(pulsar.ChecksumError):
        producer.send(b"refused")
    producer.send(b"taken")
    pulsar_client.close()
    assert values(inside, topic) == [b"taken"]


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("LOOKUP", "ServiceNotReady"),
        ("PARTITIONED_METADATA", "ServiceNotReady"),
        ("producer", "ServiceNotReady"),
        ("SEND", "PersistenceError"),
    ],
)
def test_a_pulsar_producer_gets_there(
    inside: Penstock, topic: str, pulsar_client: pulsar.Client, command: str, error: str
) -> None:
    fault = inside.fail_next(command, error)
    pulsar_client.create_producer(topic).send(b"there")
    pulsar_client.close()
    assert fault.hits == 1
    assert values(inside, topic) == [b"there"]


def test_a_pulsar_producer_and_consumer_are_refused(
    inside: Penstock, topic: str, pulsar_client: pulsar.Client
) -> None:
    inside.fail_next("PRODUCER", "ProducerBusy")
    with pytest.raises(pulsar.ProducerBusy):
        pulsar_client.create_producer(topic)
    inside.fail_next("subscribe", "ConsumerBusy")
    with pytest.raises(pulsar.ConsumerBusy):
        pulsar_client.subscribe(topic, "subscription")
    pulsar_client.close()


def test_late_pulsar_messages_keep_their_place(
    inside: Penstock, topic: str, pulsar_client: pulsar.Client
) -> None:
    producer = pulsar_client.create_producer(topic, batching_enabled=False)
    fault = inside.delay_next("send", 0.1, protocol="pulsar")
    sent = [b"%d" % number for number in range(10)]
    for value in sent:
        producer.send_async(value, None)
    producer.flush()
    pulsar_client.close()
    assert fault.hits == 1
    assert values(inside, topic) == sent


@pytest.mark.parametrize(
    ("carried_out", "deduplication", "stored"),
    [(False, "true", 1), (True, "true", 1), (False, "false", 1), (True, "false", 2)],
)
def test_a_pulsar_connection_is_cut(
    inside: Penstock,
    topic: str,
    pulsar_client: pulsar.Client,
    carried_out: bool,
    deduplication: str,
    stored: int,
) -> None:
    config = {"penstock.deduplication": deduplication}
    admin = AdminClient({"bootstrap.servers": inside.kafka})
    admin.create_topics([NewTopic(topic, 1, config=config)])[topic].result(PATIENCE_SECONDS)
    producer = pulsar_client.create_producer(topic)
    inside.disconnect_next("SEND", carried_out=carried_out)
    producer.send(b"value")
    pulsar_client.close()
    assert values(inside, topic) == [b"value"] * stored


# Iggy


async def iggy_client(broker: Penstock, topic: str) -> IggyClient:
    broker.create_topic(topic)
    client = IggyClient.from_connection_string(f"iggy://iggy:iggy@{broker.iggy}")
    await client.connect()
    return client


async def iggy_send(client: IggyClient, topic: str, value: bytes) -> None:
    await client.send_messages("default", topic, Partitioning.balanced(), [SendMessage(value)])


@pytest.mark.parametrize("error", ["CANNOT_APPEND_MESSAGE", "CannotAppendMessage", 4010])
async def test_an_iggy_command_is_refused(inside: Penstock, topic: str, error: str | int) -> None:
    client = await iggy_client(inside, topic)
    inside.fail_next("send_messages", error, topic=f"default/{topic}")
    with pytest.raises(Exception, match=r"(?i)append"):
        await iggy_send(client, topic, b"refused")
    await iggy_send(client, topic, b"taken")
    await inside.wait_for_async(topic, 1, timeout=60)
    assert values(inside, topic) == [b"taken"]


async def test_an_iggy_command_is_late(inside: Penstock, topic: str) -> None:
    client = await iggy_client(inside, topic)
    fault = inside.delay_next("SEND_MESSAGES", 0.2)
    began = time.monotonic()
    await iggy_send(client, topic, b"late")
    assert lasted(began, 0.2)
    assert fault.hits == 1


async def test_an_iggy_connection_is_cut(inside: Penstock, topic: str) -> None:
    client = await iggy_client(inside, topic)
    fault = inside.disconnect_next("PING", protocol="iggy")
    with pytest.raises(Exception):  # noqa: B017, PT011  # whatever the client makes of it
        async with asyncio.timeout(1):
            await client.ping()
    assert fault.hits == 1


# All


def test_all_connections_are_cut_at_once(inside: Penstock, topic: str) -> None:
    inside.create_topic(topic)
    sent = Sent(inside)
    sent.send(topic, b"before")
    assert inside.disconnect_all() >= 1
    sent.send(topic, b"after")
    assert values(inside, topic) == [b"before", b"after"]


def test_faults_happen_in_their_order_and_can_be_taken_back(inside: Penstock, topic: str) -> None:
    inside.create_topic(topic)
    refused = inside.fail_next("produce", "INVALID_RECORD")
    late = inside.delay_next("produce", 0.05)
    never = inside.fail_next("produce", "INVALID_RECORD", times=5)
    sent = Sent(inside)
    sent.send(topic, b"1")
    sent.send(topic, b"2")
    inside.clear_faults()
    sent.send(topic, b"3")
    assert sent.outcomes == ["INVALID_RECORD", None, None]
    assert [each.hits for each in (refused, late, never)] == [1, 1, 0]
    assert never.left == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("produse", "NOT_LEADER_OR_FOLLOWER"),
            "no request of any protocol's; did you mean Produce",
        ),
        (("produce", "NOT_LEADER"), "no error 'NOT_LEADER'; did you mean NOT_LEADER_OR_FOLLOWER"),
        (("produce", 4711), "there is no error 4711"),
        (("SEND", "NotReady"), "did you mean ServiceNotReady"),
    ],
)
def test_names_that_there_are_not(
    inside: Penstock, arguments: tuple[str, str | int], said: str
) -> None:
    with pytest.raises(UnknownNameError, match=said):
        inside.fail_next(*arguments)


def test_what_can_not_be_asked_for(inside: Penstock) -> None:
    with pytest.raises(ValueError, match="FLOW has no answer that could fail"):
        inside.fail_next("FLOW", "UnknownError")
    with pytest.raises(ValueError, match="known to kafka, iggy: say protocol="):
        inside.fail_next("create_partitions", 36)
    with pytest.raises(ValueError, match="at least once"):
        inside.fail_next("produce", "NOT_LEADER_OR_FOLLOWER", times=0)
    assert inside.fail_next("create_partitions", 36, protocol="kafka").error == 36
