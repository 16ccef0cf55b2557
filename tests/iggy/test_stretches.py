"""Goal: no answer of Iggy's holds the event loop for long, however many things it describes.

Method: what asks for something (GET_...) asks for thousands of topics, streams, groups and clients.
Thousands of topics are one topic under many names.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

import stretches
from iggy_dialog import CLIENT, SESSIONS, STREAM, TOPIC, Dialog, Transport
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import NamespaceName, TopicName
from penstock.broker.topics.namespaces import Namespace
from penstock.broker.topics.topic import Topic
from penstock.iggy.handlers import HANDLERS
from penstock.iggy.wire import frame, requests
from penstock.iggy.wire.commands import Command, Operation
from penstock.iggy.wire.identifiers import Consumer, ConsumerKind, Identifier
from penstock.iggy.wire.message import Message

MANY = 3_000
BAR_SECONDS = 0.010
TRIES = 20

GROUP = Identifier("g0")
REQUESTS: dict[Command, Message] = {
    Command.GET_STATS: requests.Empty(),
    Command.GET_SNAPSHOT: requests.GetSnapshot(1, bytes([100])),
    Command.GET_CLUSTER_METADATA: requests.Empty(),
    Command.GET_ME: requests.Empty(),
    Command.GET_CLIENT: requests.GetClient(1),
    Command.GET_CLIENTS: requests.Empty(),
    Command.GET_USER: requests.UserRequest(Identifier("iggy")),
    Command.GET_USERS: requests.Empty(),
    Command.GET_PERSONAL_ACCESS_TOKENS: requests.Empty(),
    Command.GET_CONSUMER_OFFSET: requests.GetConsumerOffset(
        Consumer(ConsumerKind.CONSUMER, Identifier("c")), STREAM, TOPIC, 0
    ),
    Command.GET_STREAM: requests.StreamRequest(STREAM),
    Command.GET_STREAMS: requests.Empty(),
    Command.GET_TOPIC: requests.TopicRequest(STREAM, TOPIC),
    Command.GET_TOPICS: requests.StreamRequest(STREAM),
    Command.GET_CONSUMER_GROUP: requests.ConsumerGroupRequest(STREAM, TOPIC, GROUP),
    Command.GET_CONSUMER_GROUPS: requests.TopicRequest(STREAM, TOPIC),
}


def test_each_question_is_asked() -> None:
    asking = {
        command
        for command, handler in HANDLERS.items()
        if command.name.startswith("GET_") and handler.request is not requests.Anything
    }
    assert asking == REQUESTS.keys()


@asynccontextmanager
async def broker_with_many(folder: Path) -> AsyncIterator[tuple[Broker, Dialog]]:
    """A broker whose topic has thousands of names, in a stream among thousands."""
    broker = await Broker.open(folder, BrokerSettings())
    dialog = Dialog(broker)
    await dialog.set_up(partitions=3)
    (topic,) = broker.topics.all()
    index, namespaces = broker.topics._index, broker.namespaces
    copies = []
    for number in range(1, MANY):
        copy = Topic(
            uuid.uuid4(),
            TopicName(*topic.name.in_namespace, f"t{number}"),
            iggy_topic_id=index.take_iggy_id(topic.name.in_namespace, None),
            partitioned=True,
            config=topic.config,
            created_at_us=1,
        )
        copy.partitions = topic.partitions
        index.add(copy)
        copies.append(copy)
        namespaces._remember(Namespace(NamespaceName("public", f"s{number}"), 1000 + number, 1))
    for number in range(MANY // 10):
        await broker.topic_groups.create(topic, f"g{number}")
    clients = [SESSIONS.make(broker, Transport()) for _ in range(MANY)]
    try:
        yield broker, dialog
    finally:
        for client in clients:
            client.close()
        for copy in copies:
            index.remove(copy)
        await broker.close()


def built(command: Command, request: Message) -> bytes:
    header = frame.RequestHeader(CLIENT, bytes(16), 0, 9, Operation.NON_REPLICATED, 1, command)
    return b"".join(frame.build_request(header, bytes(request.encode())))


async def longest(folder: Path) -> dict[str, float]:
    """Return the milliseconds of the longest stretch, in the best of some tries, by command."""
    found: dict[str, float] = {}
    async with broker_with_many(folder) as (_, dialog):
        asker = stretches.Asker(dialog.session)
        for command, request in REQUESTS.items():
            best = 1.0
            for _ in range(TRIES):
                best = min(best, await asker.stretch(built(command, request)))
                if best < BAR_SECONDS:
                    break
            found[command.name] = 1000 * best
    return found


@pytest.mark.timeout(120)
def test_no_answer_holds_the_loop(tmp_path: Path) -> None:
    found = stretches.run(partial(longest, tmp_path), collects=False)
    assert {name: ms for name, ms in found.items() if ms > 1000 * BAR_SECONDS} == {}
