"""Goal: no command of Pulsar's holds the event loop for long, however many parts it has.

Method: of each command that is served and each repeated field in it, the largest command that may
be. They are made from the declarations, so that none is forgotten that is served one day. A PING
behind each is answered when it is done.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

import stretches
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.limits import PULSAR_ACK_SET_WORDS, PULSAR_COMMAND_BYTES, PULSAR_COMMAND_PARTS
from penstock.pulsar.handlers import HANDLERS
from penstock.pulsar.wire import pulsar_api_pb2 as api
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand
from penstock.records.pulsar.metadata_pb2 import EncryptionKeys
from penstock.session import PeerError
from pulsar_peer import Peer, entry, frame_of

TRIES = 20
BAR_SECONDS = 0.010
CONSUMER = 7
TOPICS = 10_000

VALUES: dict[str, object] = {
    "consumer_id": CONSUMER,
    "request_id": 9,
    "ledgerId": 1,
    "entryId": 1,
    "topic": "persistent://public/default/orders",
    "namespace": "public/default",
    "subscription": "readers",
    "key": "k",
    "value": "v",
}
"""What makes commands ones that are carried out, by the fields' names."""
LISTS = {BaseCommand.ACK, BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES}
"""Commands that may have more parts than others."""

PING = BaseCommand(type=BaseCommand.PING)
PING.ping.SetInParent()
PONG = BaseCommand(type=BaseCommand.PONG)
PONG.pong.SetInParent()


class Many(NamedTuple):
    """A repeated field of a command, by the fields that lead to it."""

    kind: BaseCommand.Type.ValueType
    path: tuple[FieldDescriptor, ...]

    def __str__(self) -> str:
        return ".".join(field.name for field in self.path)


def repeated(of: Descriptor, path: tuple[FieldDescriptor, ...]) -> Iterator[Many]:
    for field in of.fields:
        if field.is_repeated:
            yield Many(path[0].number if path else field.number, (*path, field))
        if field.message_type is not None and field not in path:
            yield from repeated(field.message_type, (*path, field))


def all_repeated() -> list[Many]:
    fields = BaseCommand.DESCRIPTOR.fields_by_number
    return [
        many for kind in HANDLERS for many in repeated(fields[kind].message_type, (fields[kind],))
    ]


def fill(message: Message) -> Any:
    for field in message.DESCRIPTOR.fields:
        value = VALUES.get(field.name)
        fits = isinstance(value, str) == (field.type == FieldDescriptor.TYPE_STRING)
        if value is not None and fits and not field.is_repeated:
            setattr(message, field.name, value)
    return message


def largest(many: Many) -> BaseCommand:
    """Return a command of as many parts as one may have."""
    made = message = BaseCommand(type=many.kind)
    *outer, last = many.path
    for field in outer:
        part = getattr(message, field.name)
        message = fill(part.add() if field.is_repeated else part)
        message.SetInParent()
    elements = getattr(message, last.name)
    if last.message_type is not None:
        one = fill(elements.add())
        room = PULSAR_COMMAND_BYTES // (len(one.SerializePartialToString()) + 2) - 10
        count = room if many.kind in LISTS else PULSAR_COMMAND_PARTS - 10
        elements.extend([one] * (count - 1))
    elif last.type == FieldDescriptor.TYPE_STRING:
        elements.extend(["text"] * (PULSAR_COMMAND_PARTS - 10))
    else:
        elements.extend([1] * PULSAR_ACK_SET_WORDS)
    return made


def encoded(made: BaseCommand) -> bytes:
    data = made.SerializePartialToString()
    assert len(data) <= PULSAR_COMMAND_BYTES
    return (len(data) + 4).to_bytes(4) + len(data).to_bytes(4) + data


def is_pong(data: bytes) -> bool:
    return data.endswith(frame_of(PONG))


@asynccontextmanager
async def connected(broker: Broker, topic: str = "orders") -> AsyncIterator[Peer]:
    peer = Peer(broker)
    await peer.connect()
    await peer.subscribe(topic, consumer_id=CONSUMER, subType=api.CommandSubscribe.Shared)
    yield peer
    peer.lose()


async def longest(folder: Path, work: Callable[[Broker], Awaitable[float]]) -> float:
    """Return the seconds of the longest stretch, in the best of some tries."""
    broker = await Broker.open(folder, BrokerSettings())
    try:
        found: list[float] = []
        while len(found) < TRIES and min(found, default=BAR_SECONDS) >= BAR_SECONDS:
            found.append(await work(broker))
        return min(found)
    finally:
        await broker.close()


async def of_command(frame: bytes, broker: Broker) -> float:
    async with connected(broker) as peer:
        asker = stretches.Asker(peer.session, is_pong)
        try:
            return await asker.stretch(frame, frame_of(PING))
        except PeerError:  # It makes no sense; how long that took to find counts.
            return asker.longest


@pytest.mark.parametrize("many", all_repeated(), ids=str)
def test_no_command_holds_the_loop(tmp_path: Path, many: Many) -> None:
    work = partial(longest, tmp_path, partial(of_command, encoded(largest(many))))
    assert stretches.run(work, collects=False) < BAR_SECONDS


async def of_large_batch(broker: Broker) -> float:
    count = 64 * int(PULSAR_ACK_SET_WORDS)
    topic = f"batches-{len(broker.topics.all())}"
    async with connected(broker, topic) as peer:
        await peer.producer(topic)
        # Encrypted, as it says, so that nobody looks for the messages.
        sealed = {"encryption_keys": [EncryptionKeys(key="k", value=b"sealed key")]}
        size = {"compression": 1, "uncompressed_size": 8 * count}
        await peer.publish(entry(num_messages_in_batch=count, **size, **sealed))
        peer.flow(count, consumer_id=CONSUMER)
        message_id = (await peer.hear(BaseCommand.MESSAGE)).message_id
        message_id.ack_set.extend([0x5555_5555_5555_5555] * PULSAR_ACK_SET_WORDS)
        consumer = peer.client.consumers[CONSUMER]
        ack = BaseCommand(
            type=BaseCommand.ACK,
            ack=api.CommandAck(
                consumer_id=CONSUMER, ack_type=api.CommandAck.Individual, message_id=[message_id]
            ),
        )
        asker = stretches.Asker(peer.session, is_pong)
        found = await asker.stretch(frame_of(ack), frame_of(PING))
        assert consumer.member.unacknowledged == count // 2
        return found


def test_every_other_message_of_a_large_batch(tmp_path: Path) -> None:
    assert stretches.run(partial(longest, tmp_path, of_large_batch), collects=False) < BAR_SECONDS


async def of_many_topics(broker: Broker) -> float:
    topic = broker.topics.get(TopicName("public", "default", "orders"))
    if topic is not None:
        broker.topics._index.in_namespace = lambda _: [topic] * TOPICS
    command = BaseCommand(type=BaseCommand.GET_TOPICS_OF_NAMESPACE)
    fill(command.getTopicsOfNamespace)
    return await of_command(frame_of(command), broker)


def test_the_names_of_many_topics(tmp_path: Path) -> None:
    assert stretches.run(partial(longest, tmp_path, of_many_topics), collects=False) < BAR_SECONDS
