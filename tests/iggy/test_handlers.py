"""Commands and forms of commands that the real client does not use."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from iggy_dialog import STREAM, TOPIC, Dialog, polled_batches, producer_batch
from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode
from penstock.iggy.wire.identifiers import (
    Consumer,
    ConsumerKind,
    Identifier,
    Partitioning,
    PartitioningKind,
    PollingKind,
    PollingStrategy,
)
from penstock.iggy.wire.options import Typed
from penstock.xxh32 import xxh32

READER = Consumer(ConsumerKind.CONSUMER, Identifier("reader"))
GROUP = Consumer(ConsumerKind.GROUP, Identifier("g"))


@pytest.fixture
async def dialog(tmp_path: Path) -> AsyncIterator[Dialog]:
    broker = await Broker.open(tmp_path, BrokerSettings())
    made = Dialog(broker)
    await made.set_up(partitions=3)
    yield made
    made.session.close()
    await broker.close()


def poll(
    kind: PollingKind,
    value: int = 0,
    *,
    consumer: Consumer = READER,
    partition: int | None = 0,
    count: int = 10,
    auto_commit: bool = False,
) -> requests.PollMessages:
    strategy = PollingStrategy(kind, value)
    return requests.PollMessages(consumer, STREAM, TOPIC, partition, strategy, count, auto_commit)


async def payloads(dialog: Dialog, request: requests.PollMessages) -> list[bytes]:
    answer = await dialog.ask(Command.POLL_MESSAGES, request)
    assert answer.status == 0
    _, batches = polled_batches(answer.body)
    return [frame[48:] for _, frames in batches for frame in frames]


async def test_server_chooses_the_partition_where_it_is_left_to_it(dialog: Dialog) -> None:
    chosen = []
    for partitioning in [
        *[Partitioning(PartitioningKind.BALANCED)] * 4,
        Partitioning(PartitioningKind.MESSAGES_KEY, b"key-1"),
    ]:
        size = len(partitioning.value) + 12
        request = requests.SendMessages(
            size, STREAM, TOPIC, partitioning, 1, memoryview(producer_batch(b"x"))
        )
        answer = await dialog.ask(Command.SEND_MESSAGES, request)
        (confirmed,) = replies.Confirmations.decode(answer.body).confirmations
        chosen.append(confirmed.partition_id)
    assert chosen[:4] == [0, 1, 2, 0]
    assert chosen[4] == xxh32(b"key-1") % 3


async def test_batch_that_the_topic_does_not_take_is_refused(tmp_path: Path) -> None:
    broker = await Broker.open(tmp_path, BrokerSettings())
    dialog = Dialog(broker)
    await dialog.set_up()
    (topic,) = broker.topics.all()
    batch = producer_batch(b"one")
    for config, status in (
        ({"max_message_bytes": "100"}, ErrorCode.TOO_BIG_MESSAGE_PAYLOAD),
        ({"message_timestamp_after_max_ms": "0"}, 0),
        ({}, 0),
    ):
        await broker.topics.configure(topic, lambda _, config=config: config)
        assert (await dialog.produce(batch, 1)).status == status
    ahead = (time.time_ns() + 10**12) // 1000
    await broker.topics.configure(topic, lambda _: {"message_timestamp_after_max_ms": "900000"})
    late = await dialog.produce(producer_batch(b"late", origin_us=ahead), 1)
    assert late.status == ErrorCode.TIMESTAMP_OUT_OF_RANGE
    await broker.topics.configure(topic, lambda _: {"terminated": "true"})
    assert (await dialog.produce(batch, 1)).status == ErrorCode.CANNOT_APPEND_MESSAGE
    assert topic.partitions[0].end_offset == 2
    dialog.session.close()
    await broker.close()


async def test_client_describes_itself_and_its_groups(dialog: Dialog) -> None:
    await dialog.ask(
        Command.CREATE_CONSUMER_GROUP, requests.CreateConsumerGroup(STREAM, TOPIC, "g")
    )
    group = requests.ConsumerGroupRequest(STREAM, TOPIC, Identifier("g"))
    await dialog.ask(Command.JOIN_CONSUMER_GROUP, group)
    me = replies.ClientDetails.decode((await dialog.ask(Command.GET_ME)).body)
    assert (me.client.user_id, me.client.transport) == (0, 1)
    assert me.client.address == "127.0.0.1:50000"
    assert me.groups == [replies.GroupMembership(0, 0, 0)]
    asked = requests.GetClient(me.client.client_id)
    found = await dialog.ask(Command.GET_CLIENT, asked)
    assert replies.ClientDetails.decode(found.body) == me
    assert (await dialog.ask(Command.GET_CLIENT, requests.GetClient(99))) == (0, b"", 0)
    listed = replies.Clients.decode((await dialog.ask(Command.GET_CLIENTS)).body)
    assert listed.clients == [me.client]


async def test_offset_is_stored_looked_up_and_deleted(dialog: Dialog) -> None:
    await dialog.produce(producer_batch(b"0", b"1", b"2"), 3)
    get = requests.GetConsumerOffset(READER, STREAM, TOPIC, None)
    assert (await dialog.ask(Command.GET_CONSUMER_OFFSET, get)) == (0, b"", 0)
    store = requests.StoreConsumerOffset(READER, STREAM, TOPIC, None, 1, 1)
    assert not (await dialog.ask(Command.STORE_CONSUMER_OFFSET, store)).rejected
    by_number = Consumer(ConsumerKind.CONSUMER, Identifier(xxh32(b"reader")))
    for consumer in (READER, by_number):
        get = requests.GetConsumerOffset(consumer, STREAM, TOPIC, 0)
        answer = await dialog.ask(Command.GET_CONSUMER_OFFSET, get)
        assert replies.ConsumerOffset.decode(answer.body) == replies.ConsumerOffset(0, 2, 1)
    too_far = requests.StoreConsumerOffset(READER, STREAM, TOPIC, 0, 3, 1)
    answer = await dialog.ask(Command.STORE_CONSUMER_OFFSET, too_far)
    assert answer.rejected == ErrorCode.INVALID_OFFSET
    forget = requests.DeleteConsumerOffset(READER, STREAM, TOPIC, 0, 1)
    assert not (await dialog.ask(Command.DELETE_CONSUMER_OFFSET, forget)).rejected
    answer = await dialog.ask(Command.DELETE_CONSUMER_OFFSET, forget)
    assert answer.rejected == ErrorCode.CONSUMER_OFFSET_NOT_FOUND


async def test_polls_without_messages_say_where_the_partition_is(dialog: Dialog) -> None:
    for kind in PollingKind:
        assert await payloads(dialog, poll(kind)) == []
    await dialog.produce(producer_batch(b"0"), 1)
    for start in (1, 2, 2**63, 2**64 - 1):
        answer = await dialog.ask(Command.POLL_MESSAGES, poll(PollingKind.OFFSET, start))
        assert replies.Polled.decode(answer.body) == replies.Polled(0, 0, 0)
    assert await payloads(dialog, poll(PollingKind.TIMESTAMP, 2**64 - 1)) == []
    assert await payloads(dialog, poll(PollingKind.NEXT, auto_commit=True)) == [b"0"]
    assert await payloads(dialog, poll(PollingKind.NEXT, auto_commit=True)) == []
    for kind in PollingKind:
        answer = await dialog.ask(Command.POLL_MESSAGES, poll(kind, count=0))
        assert answer == (0, replies.Polled(0, 0, 0).packed(), 0)


async def test_auto_commit_never_goes_back(dialog: Dialog) -> None:
    await dialog.produce(producer_batch(b"0"), 1)
    await dialog.produce(producer_batch(b"1"), 1)
    await dialog.produce(producer_batch(b"2"), 1)
    again = poll(PollingKind.FIRST, count=1, auto_commit=True)
    going_on = poll(PollingKind.NEXT, count=1, auto_commit=True)
    assert await payloads(dialog, going_on) == [b"0"]
    assert await payloads(dialog, going_on) == [b"1"]
    assert await payloads(dialog, again) == [b"0"]
    assert await payloads(dialog, going_on) == [b"2"]
    back = requests.StoreConsumerOffset(READER, STREAM, TOPIC, 0, 0, 1)
    assert not (await dialog.ask(Command.STORE_CONSUMER_OFFSET, back)).rejected
    assert await payloads(dialog, going_on) == [b"1"]


async def test_group_polls_its_own_partitions_only(dialog: Dialog) -> None:
    answer = await dialog.ask(Command.POLL_MESSAGES, poll(PollingKind.FIRST, consumer=GROUP))
    assert answer.status == ErrorCode.CONSUMER_GROUP_ID_NOT_FOUND
    await dialog.ask(
        Command.CREATE_CONSUMER_GROUP, requests.CreateConsumerGroup(STREAM, TOPIC, "g")
    )
    answer = await dialog.ask(Command.POLL_MESSAGES, poll(PollingKind.FIRST, consumer=GROUP))
    assert replies.Polled.decode(answer.body) == replies.Polled(2**32 - 1, 0, 0)


async def test_flush_waits_for_what_is_there(dialog: Dialog) -> None:
    request = requests.FlushUnsavedBuffer(STREAM, TOPIC, 0, True)
    assert (await dialog.ask(Command.FLUSH_UNSAVED_BUFFER, request)) == (0, b"", 0)
    await dialog.produce(producer_batch(b"0"), 1)
    assert (await dialog.ask(Command.FLUSH_UNSAVED_BUFFER, request)) == (0, b"", 0)
    missing = requests.FlushUnsavedBuffer(STREAM, TOPIC, 3, True)
    answer = await dialog.ask(Command.FLUSH_UNSAVED_BUFFER, missing)
    assert answer.status == ErrorCode.PARTITION_NOT_FOUND


async def test_what_is_missing_is_an_empty_reply_to_a_look_up(dialog: Dialog) -> None:
    nobody = Identifier("nobody")
    for command, request in [
        (Command.GET_STREAM, requests.StreamRequest(nobody)),
        (Command.GET_TOPIC, requests.TopicRequest(STREAM, Identifier(7))),
        (Command.GET_TOPIC, requests.TopicRequest(nobody, TOPIC)),
        (Command.GET_CONSUMER_GROUP, requests.ConsumerGroupRequest(STREAM, TOPIC, nobody)),
        (Command.GET_USER, requests.UserRequest(nobody)),
        (Command.GET_CONSUMER_OFFSET, requests.GetConsumerOffset(READER, nobody, TOPIC, 0)),
        (Command.GET_CONSUMER_OFFSET, requests.GetConsumerOffset(READER, STREAM, nobody, 0)),
        (Command.SYNC_CONSUMER_GROUP, requests.ConsumerGroupRequest(STREAM, nobody, nobody)),
    ]:
        assert (await dialog.ask(command, request)) == (0, b"", 0)
    for stream, topic, code in [
        (nobody, TOPIC, ErrorCode.STREAM_ID_NOT_FOUND),
        (STREAM, nobody, ErrorCode.TOPIC_ID_NOT_FOUND),
    ]:
        sought = requests.ConsumerGroupRequest(stream, topic, nobody)
        assert (await dialog.ask(Command.GET_CONSUMER_GROUP, sought)).status == code
    answer = await dialog.ask(Command.GET_TOPICS, requests.StreamRequest(nobody))
    assert replies.Topics.decode(answer.body).topics == []
    answer = await dialog.ask(Command.DESCRIBE_OPTIONS, requests.DescribeOptions(4))
    assert answer.status == ErrorCode.INVALID_COMMAND


async def test_streams_are_created_at_a_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client has as many at once as it may, then hears that there are too many."""
    monkeypatch.setattr(limits, "ADDRESS_NAMESPACES_CREATED_AT_ONCE", 2)
    monkeypatch.setattr(limits, "ADDRESS_NAMESPACES_CREATED_A_SECOND", 0.001)
    broker = await Broker.open(tmp_path, BrokerSettings())
    dialog = Dialog(broker)
    await dialog.log_in()
    answers = [
        await dialog.ask(Command.CREATE_STREAM, requests.CreateStream(name, {})) for name in "abc"
    ]
    assert [each.rejected for each in answers] == [0, 0, ErrorCode.TOO_MANY_STREAMS]
    assert len(broker.namespaces.all()) == 2
    dialog.session.close()
    await broker.close()


async def test_deleted_partitions_are_nobody_s_any_more(dialog: Dialog) -> None:
    def asked(count: int) -> requests.DeletePartitions:
        return requests.DeletePartitions(STREAM, TOPIC, count)

    async def owned() -> list[int]:
        answer = await dialog.ask(
            Command.SYNC_CONSUMER_GROUP, requests.ConsumerGroupRequest(STREAM, TOPIC, GROUP.id)
        )
        return replies.Assignment.decode(answer.body).partitions

    await dialog.ask(
        Command.CREATE_CONSUMER_GROUP, requests.CreateConsumerGroup(STREAM, TOPIC, "g")
    )
    await dialog.ask(
        Command.JOIN_CONSUMER_GROUP, requests.ConsumerGroupRequest(STREAM, TOPIC, GROUP.id)
    )
    assert await owned() == [0, 1, 2]
    await dialog.produce(producer_batch(b"0"), 1)
    assert (await dialog.ask(Command.DELETE_PARTITIONS, asked(2))).rejected == 0
    # A member of the division before is sent to ask again.
    stale = await dialog.ask(
        Command.POLL_MESSAGES, poll(PollingKind.NEXT, consumer=GROUP, partition=0)
    )
    assert replies.Polled.decode(stale.body[:16]).partition_id == replies.NO_PARTITION
    assert await owned() == [0]
    assert await payloads(dialog, poll(PollingKind.NEXT, consumer=GROUP)) == [b"0"]
    gone = await dialog.ask(Command.POLL_MESSAGES, poll(PollingKind.FIRST, partition=1))
    assert gone.status == ErrorCode.PARTITION_NOT_FOUND
    for count, refusal in (
        (2, ErrorCode.INVALID_PARTITIONS_COUNT),
        (0, ErrorCode.TOO_MANY_PARTITIONS),
        (limits.IGGY_REQUEST_PARTITIONS + 1, ErrorCode.TOO_MANY_PARTITIONS),
    ):
        assert (await dialog.ask(Command.DELETE_PARTITIONS, asked(count))).rejected == refusal


async def test_segments_are_deleted(dialog: Dialog) -> None:
    def asked(partition: int, topic: Identifier = TOPIC) -> requests.DeleteSegments:
        return requests.DeleteSegments(STREAM, topic, partition, 2**32 - 1)

    await dialog.produce(producer_batch(b"0"), 1)
    assert await dialog.ask(Command.DELETE_SEGMENTS, asked(0)) == (0, b"", 0)
    assert await payloads(dialog, poll(PollingKind.FIRST)) == [b"0"]
    unknown = await dialog.ask(Command.DELETE_SEGMENTS, asked(7))
    assert unknown.status == ErrorCode.PARTITION_NOT_FOUND
    unknown = await dialog.ask(Command.DELETE_SEGMENTS, asked(0, Identifier("missing")))
    assert unknown.status == ErrorCode.TOPIC_ID_NOT_FOUND


async def test_bounds_are_judged_before_what_is_named_is_sought(dialog: Dialog) -> None:
    nobody = Identifier("nobody")
    unheard_of = {"unheard_of": Typed.text("x")}
    for command, request, code in [
        (
            Command.CREATE_TOPIC,
            requests.CreateTopic(nobody, 1, "t", unheard_of),
            ErrorCode.UNSUPPORTED_OPTION_KEY,
        ),
        (
            Command.UPDATE_TOPIC,
            requests.UpdateTopic(STREAM, nobody, "t", unheard_of),
            ErrorCode.UNSUPPORTED_OPTION_KEY,
        ),
        (
            Command.CREATE_PARTITIONS,
            requests.CreatePartitions(STREAM, nobody, 0),
            ErrorCode.TOO_MANY_PARTITIONS,
        ),
        (
            Command.DELETE_PARTITIONS,
            requests.DeletePartitions(STREAM, nobody, 0),
            ErrorCode.TOO_MANY_PARTITIONS,
        ),
    ]:
        assert (await dialog.ask(command, request)).rejected == code
