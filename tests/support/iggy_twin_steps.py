"""What twins of Iggy are asked, of random choices.

Left out is what differs on purpose; docs/iggy.md has the list.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from iggy_twins import Twin
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.identifiers import (
    Consumer,
    ConsumerKind,
    Identifier,
    Partitioning,
    PartitioningKind,
    PollingKind,
    PollingStrategy,
)
from penstock.iggy.wire.message import Message
from penstock.iggy.wire.options import Typed
from side_by_side import Outcome, Step, Weights

TOPICS = {"one": 1, "many": 3}
NAMES = ("one", "many", "later", "missing")
NUMBERS = (0, 1, 2, 9)
GROUPS = ("g", "h")
READERS = ("r", 7)
COUNTS = (0, 1, 2, 3, 10, 2**32 - 1)
OFFSETS = (0, 1, 2, 5, 50, 2**64 - 1)
KEYS = (b"a", b"key", b"user-1", bytes(8), b"k" * 255)
TOPIC_OPTIONS = (
    {},
    {"message_expiry": Typed.u64(0)},
    {"message_expiry": Typed.text("1 day")},
    {"max_topic_size": Typed.u64(0)},
    {"max_topic_size": Typed.u64(1)},
    {"max_topic_size": Typed.text("10 GB")},
    {"segment_size": Typed.u64(0)},
    {"segment_size": Typed.u64(1 << 20)},
    {"segment_size": Typed.u64((1 << 20) + 1)},
    {"segment_size": Typed.u32(1 << 20)},
    {"compression_algorithm": Typed.text("gzip")},
    {"compression_algorithm": Typed.text("zip")},
    {"messages_required_to_save": Typed.u32(0)},
    {"messages_required_to_save": Typed.u32(7)},
    {"size_of_messages_required_to_save": Typed.u64(0)},
    {"unheard_of": Typed.text("x")},
)
LEFT_OUT = {Typed.u64(0), Typed.u64(1), Typed.text("1 day"), Typed.text("10 GB")}
"""Where a topic is changed: what the original shows as it was said, or compares with a topic."""
PLACES = (Command.GET_TOPIC, Command.GET_CONSUMER_GROUPS)
OF_GROUPS = (
    Command.GET_CONSUMER_GROUP,
    Command.JOIN_CONSUMER_GROUP,
    Command.LEAVE_CONSUMER_GROUP,
    Command.SYNC_CONSUMER_GROUP,
)


def any_topic(chance: random.Random) -> Identifier:
    return Identifier(chance.choice([*NAMES, *NAMES, *NUMBERS]))


def _reader(chance: random.Random) -> Consumer:
    return Consumer(ConsumerKind.CONSUMER, Identifier(chance.choice(READERS)))


def create_topic(chance: random.Random) -> Step[Twin]:
    name, options = chance.choice(NAMES[:3]), chance.choice(TOPIC_OPTIONS)
    partitions = chance.choice([0, 1, 3, 1001])

    def step(twin: Twin) -> Outcome:
        request = requests.CreateTopic(twin.stream, partitions, name, options)
        return twin.ask(Command.CREATE_TOPIC, request)

    return step


def update_topic(chance: random.Random) -> Step[Twin]:
    topic, name = any_topic(chance), chance.choice(NAMES[:3])
    options = chance.choice([each for each in TOPIC_OPTIONS if not LEFT_OUT & {*each.values()}])

    def step(twin: Twin) -> Outcome:
        request = requests.UpdateTopic(twin.stream, topic, name, options)
        return twin.ask(Command.UPDATE_TOPIC, request)

    return step


def of_topic(chance: random.Random) -> Step[Twin]:
    topic, command = any_topic(chance), chance.choices(PLACES, [5, 3])[0]
    return lambda twin: twin.ask(command, requests.TopicRequest(twin.stream, topic))


def delete_topic(chance: random.Random) -> Step[Twin]:
    topic = any_topic(chance)
    return lambda twin: delete(twin, topic)


def delete(twin: Twin, topic: Identifier) -> Outcome:
    return twin.ask(Command.DELETE_TOPIC, requests.TopicRequest(twin.stream, topic))


def of_stream(chance: random.Random) -> Step[Twin]:
    command, exists = chance.choice([Command.GET_STREAM, Command.GET_TOPICS]), chance.random() < 0.8

    def step(twin: Twin) -> Outcome:
        stream = twin.stream if exists else Identifier("nobody")
        return twin.ask(command, requests.StreamRequest(stream))

    return step


def change_partitions(chance: random.Random) -> Step[Twin]:
    topic, grow = any_topic(chance), chance.random() < 0.6
    count = chance.choice([0, 1, 1, 2, *[1001] * grow])

    def step(twin: Twin) -> Outcome:
        request = requests.CreatePartitions(twin.stream, topic, count)
        return twin.ask(Command.CREATE_PARTITIONS if grow else Command.DELETE_PARTITIONS, request)

    return step


def delete_segments(chance: random.Random) -> Step[Twin]:
    topic, partition, count = any_topic(chance), chance.choice(NUMBERS), chance.choice([0, 1, 5])

    def step(twin: Twin) -> Outcome:
        request = requests.DeleteSegments(twin.stream, topic, partition, count)
        return twin.ask(Command.DELETE_SEGMENTS, request)

    return step


def to_send(chance: random.Random) -> tuple[Identifier, Partitioning, list[bytes]]:
    """Return where to send what."""
    topic, count = any_topic(chance), chance.choice([1, 1, 3, 10])
    to = chance.choice(
        [
            *map(Partitioning.partition, NUMBERS),
            *(Partitioning(PartitioningKind.MESSAGES_KEY, key) for key in KEYS),
        ]
    )
    seed = chance.getrandbits(32)
    return topic, to, [b"%d-%d" % (seed, each) for each in range(count)]


def send(chance: random.Random) -> Step[Twin]:
    topic, to, payloads = to_send(chance)
    return lambda twin: twin.send(twin.stream, topic, to, payloads)


def poll(chance: random.Random) -> Step[Twin]:
    topic, partition, count = any_topic(chance), chance.choice(NUMBERS), chance.choice(COUNTS)
    kind, auto_commit, reader = (
        chance.choice([*PollingKind]),
        chance.random() < 0.4,
        _reader(chance),
    )
    # Between the first message and now the two have taken theirs at different times.
    value = chance.choice([0, 1, 2**63] if kind is PollingKind.TIMESTAMP else OFFSETS)

    def step(twin: Twin) -> Outcome:
        strategy = PollingStrategy(kind, value)
        request = requests.PollMessages(
            reader, twin.stream, topic, partition, strategy, count, auto_commit
        )
        return twin.ask(Command.POLL_MESSAGES, request)

    return step


def offset(chance: random.Random) -> Step[Twin]:
    topic, partition, reader = any_topic(chance), chance.choice(NUMBERS), _reader(chance)
    command, at = chance.choice(["GET", "GET", "STORE", "DELETE"]), chance.choice(OFFSETS)

    def step(twin: Twin) -> Outcome:
        place = (reader, twin.stream, topic, partition)
        if command == "GET":
            return twin.ask(Command.GET_CONSUMER_OFFSET, requests.GetConsumerOffset(*place))
        if command == "STORE":
            store = requests.StoreConsumerOffset(*place, at, 1)
            return twin.ask(Command.STORE_CONSUMER_OFFSET, store)
        return twin.ask(Command.DELETE_CONSUMER_OFFSET, requests.DeleteConsumerOffset(*place, 1))

    return step


def create_group(chance: random.Random) -> Step[Twin]:
    topic, name = any_topic(chance), chance.choice(GROUPS)

    def step(twin: Twin) -> Outcome:
        request = requests.CreateConsumerGroup(twin.stream, topic, name)
        return twin.ask(Command.CREATE_CONSUMER_GROUP, request)

    return step


def _of_group(chance: random.Random, command: Command) -> Step[Twin]:
    topic, group = any_topic(chance), Identifier(chance.choice([*GROUPS, *GROUPS, 0, 9]))
    return lambda twin: twin.ask(command, requests.ConsumerGroupRequest(twin.stream, topic, group))


def of_group(chance: random.Random) -> Step[Twin]:
    return _of_group(chance, chance.choices(OF_GROUPS, [3, 4, 1, 3])[0])


def delete_group(chance: random.Random) -> Step[Twin]:
    return _of_group(chance, Command.DELETE_CONSUMER_GROUP)


def change_stream(chance: random.Random) -> Step[Twin]:
    """Rename a stream to what it is called, or one that is not there; or make it again."""
    exists, makes = chance.random() < 0.7, chance.random() < 0.3

    def step(twin: Twin) -> Outcome:
        if makes:
            again = requests.CreateStream(str(twin.stream.value), {})
            return twin.ask(Command.CREATE_STREAM, again)
        stream = twin.stream if exists else Identifier("nobody")
        request = requests.UpdateStream(stream, str(twin.stream.value), {})
        return twin.ask(Command.UPDATE_STREAM, request)

    return step


def purge(chance: random.Random) -> Step[Twin]:
    """Empty a topic that has a reader, and see what is left; the next offset is not told."""
    whole_stream, exists = chance.random() < 0.3, chance.random() < 0.8
    reader = _reader(chance)

    def step(twin: Twin) -> Outcome:
        if not exists:
            missing = requests.TopicRequest(twin.stream, Identifier("missing"))
            return twin.ask(Command.PURGE_TOPIC, missing)
        stream, topic = Identifier(f"{twin.stream.value}-purged"), Identifier("t")
        place = (reader, stream, topic, 0)
        twin.make_stream(stream, {"t": 1})
        twin.send(stream, topic, Partitioning.partition(0), (b"1", b"2"))
        twin.ask(Command.STORE_CONSUMER_OFFSET, requests.StoreConsumerOffset(*place, 1, 1))
        purged = (
            twin.ask(Command.PURGE_STREAM, requests.StreamRequest(stream))
            if whole_stream
            else twin.ask(Command.PURGE_TOPIC, requests.TopicRequest(stream, topic))
        )
        left = twin.ask(Command.GET_CONSUMER_OFFSET, requests.GetConsumerOffset(*place))
        twin.ask(Command.DELETE_STREAM, requests.StreamRequest(stream))
        return purged, left

    return step


SMALL_TALK: tuple[tuple[Command, Message | bytes], ...] = (
    (Command.PING, b""),
    (Command.PING, b"ignored"),
    (Command.GET_STATS, b""),
    (Command.GET_ME, b""),
    (Command.GET_CLIENTS, b""),
    (Command.GET_CLIENT, requests.GetClient(2**32 - 7)),
    (Command.GET_CLIENT, b""),
    (Command.GET_USERS, b""),
    (Command.GET_USER, requests.UserRequest(Identifier("iggy"))),
    (Command.GET_USER, requests.UserRequest(Identifier(0))),
    (Command.GET_USER, requests.UserRequest(Identifier(77))),
    (Command.GET_USER, requests.UserRequest(Identifier("nobody"))),
    (Command.GET_PERSONAL_ACCESS_TOKENS, b""),
    (Command.GET_STREAMS, b""),
    (Command.GET_SNAPSHOT, b""),
    (Command.GET_SNAPSHOT, requests.GetSnapshot(9, b"\1")),
    (Command.GET_SNAPSHOT, requests.GetSnapshot(1, b"\x63")),
)


def small_talk(chance: random.Random) -> Step[Twin]:
    command, request = chance.choice(SMALL_TALK)
    return lambda twin: twin.ask(command, request)


LOOK_UPS: Mapping[Command, Callable[[Identifier], Message]] = {
    Command.GET_STREAM: requests.StreamRequest,
    Command.GET_TOPICS: requests.StreamRequest,
    Command.GET_TOPIC: lambda stream: requests.TopicRequest(stream, Identifier("one")),
    Command.GET_CONSUMER_GROUPS: lambda stream: requests.TopicRequest(stream, Identifier("one")),
    Command.GET_CONSUMER_GROUP: lambda stream: requests.ConsumerGroupRequest(
        stream, Identifier("one"), Identifier("g")
    ),
    Command.GET_CLIENT: lambda _: requests.GetClient(2**32 - 7),
    Command.GET_USER: lambda _: requests.UserRequest(Identifier("nobody")),
}


def broken_look_up(chance: random.Random) -> Step[Twin]:
    """One that is cut off, or has another byte somewhere."""
    command, share = chance.choice([*LOOK_UPS]), chance.random()
    byte = chance.choice([None, 0, 1, 2, 3, 5, 255])

    def step(twin: Twin) -> Outcome:
        whole = LOOK_UPS[command](twin.stream).encode()
        place = int(share * len(whole))
        if byte is None:
            return twin.ask(command, bytes(whole[:place]))
        whole[place] = byte
        return twin.ask(command, bytes(whole))

    return step


OF_BOTH: Weights[Twin] = {
    of_topic: 4,
    of_stream: 2,
    change_stream: 1,
    change_partitions: 2,
    delete_segments: 1,
    poll: 14,
    offset: 10,
    purge: 1,
    create_group: 2,
    of_group: 5,
    small_talk: 2,
    broken_look_up: 2,
}
"""What is said alike in all dialects."""
WEIGHTS: Weights[Twin] = {
    **OF_BOTH,
    send: 14,
    delete_topic: 1,
    delete_group: 1,
    create_topic: 3,
    update_topic: 2,
}
