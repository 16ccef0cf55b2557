"""A real client that reads as a consumer with a position that the broker keeps.

    python positions_client.py kafka 127.0.0.1:9092 topic 4 group

It begins where the broker says that the group is, acknowledges what it read at once, and prints
what it read as `histories.py` describes it, before it acknowledges it. It outlives the broker.
"""

from __future__ import annotations

import sys
import time

from crash_client import PAUSE_SECONDS, connect_pulsar, tell
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.identifiers import (
    Consumer,
    ConsumerKind,
    Identifier,
    PollingKind,
    PollingStrategy,
)
from wire_clients import IggyWire, RefusedError, iggy_messages

POLL_SECONDS = 0.1
BATCH = 1000


def consume_kafka(address: str, topic: str, partitions: int, group: str) -> None:
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    settings = {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": group, "fetch.wait.max.ms": 50, **settings}
    )
    consumer.assign([TopicPartition(topic, partition) for partition in range(partitions)])
    while True:
        for message in consumer.consume(BATCH, timeout=POLL_SECONDS):
            if message.error() is None:
                tell("read", message.partition(), message.offset(), message.value().decode())
        try:
            consumer.commit(asynchronous=False)
        except KafkaException:
            continue  # Nothing was read, or nobody is there.


def consume_pulsar(address: str, topic: str, partitions: int, group: str) -> None:
    import pulsar

    client = connect_pulsar(address)
    consumer = client.subscribe(
        topic,
        group,
        consumer_type=pulsar.ConsumerType.Shared,
        initial_position=pulsar.InitialPosition.Earliest,
    )
    while True:
        try:
            message = consumer.receive(int(POLL_SECONDS * 1000))
        except pulsar.Timeout:
            continue
        place = message.message_id()
        offset = place.entry_id() + max(0, place.batch_index())
        tell("read", place.partition(), offset, message.data().decode())
        consumer.acknowledge(message)


def consume_iggy(address: str, topic: str, partitions: int, group: str) -> None:
    # With a client of our own: apache-iggy stores an offset only with a poll, before it is read.
    while True:
        try:
            client = IggyWire(address, topic)
            while True:
                for partition in range(partitions):
                    _read_iggy(client, partition, group)
                time.sleep(PAUSE_SECONDS)
        except (OSError, RefusedError):
            time.sleep(PAUSE_SECONDS)


def _read_iggy(client: IggyWire, partition: int, group: str) -> None:
    consumer = Consumer(ConsumerKind.CONSUMER, Identifier(group))
    place = (Identifier("default"), Identifier(client.topic), partition)
    following = PollingStrategy(PollingKind.NEXT, 0)
    asked = requests.PollMessages(consumer, *place, following, BATCH, False)
    read = iggy_messages(client.ask(Command.POLL_MESSAGES, bytes(asked.encode())))
    for offset, value in read:
        tell("read", partition, offset, value.decode())
    if read:
        stored = requests.StoreConsumerOffset(consumer, *place, read[-1][0], 1)
        client.ask(Command.STORE_CONSUMER_OFFSET, bytes(stored.encode()))


def main() -> None:
    protocol, address, topic, partitions, group = sys.argv[1:]
    globals()[f"consume_{protocol}"](address, topic, int(partitions), group)


if __name__ == "__main__":
    main()
