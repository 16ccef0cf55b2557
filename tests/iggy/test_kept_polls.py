"""Goal: a poll costs what it hands out: no read for what the one before has read, and no wait."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from iggy_dialog import STREAM, TOPIC, Dialog, polled_batches, producer_batch
from parts import content
from penstock import limits
from penstock.broker.topics.partition import Partition
from penstock.iggy import kept as kept_module
from penstock.iggy.handlers import HANDLERS
from penstock.iggy.kept import Kept
from penstock.iggy.lookups import find_topic
from penstock.iggy.polling import Wanted, poll
from penstock.iggy.server import Call, IggyServer
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import IggyError
from penstock.iggy.wire.identifiers import (
    Consumer,
    ConsumerKind,
    Identifier,
    Partitioning,
    PollingKind,
    PollingStrategy,
)
from penstock.iggy.wire.message import Message

READER = Consumer(ConsumerKind.CONSUMER, Identifier("reader"))


def asked(kind: PollingKind, value: int = 0, count: int = 10) -> requests.PollMessages:
    return requests.PollMessages(
        READER, STREAM, TOPIC, 0, PollingStrategy(kind, value), count, False
    )


async def payloads(dialog: Dialog, start: int, count: int) -> list[bytes]:
    request = asked(PollingKind.OFFSET, start, count)
    answer = await dialog.ask(Command.POLL_MESSAGES, request)
    _, batches = polled_batches(answer.body)
    return [frame[48:] for _, frames in batches for frame in frames]


def numbered(start: int, end: int) -> list[bytes]:
    return [b"%05d" % number for number in range(start, end)]


@contextmanager
def counted_reads() -> Iterator[list[int]]:
    """Note the size of each read of a partition."""
    sizes: list[int] = []
    read = Partition.read_on

    async def noting(self: Partition, offset: int, max_bytes: int, *rest: object) -> object:
        sizes.append(max_bytes)
        return await read(self, offset, max_bytes, *rest)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Partition, "read_on", noting)
        yield sizes


async def test_a_few_messages_at_a_time_out_of_a_large_batch_are_read_once(dialog: Dialog) -> None:
    await dialog.produce(producer_batch(*numbered(0, 2000)), 2000)
    with counted_reads() as reads:
        for start in range(0, 2000, 10):
            assert await payloads(dialog, start, 10) == numbered(start, start + 10)
    assert len(reads) == 1


async def test_polls_that_follow_one_another_are_read_ahead(dialog: Dialog) -> None:
    for number in range(400):
        await dialog.produce(producer_batch(b"%05d" % number), 1)
    with counted_reads() as reads:
        for start in range(400):
            assert await payloads(dialog, start, 1) == numbered(start, start + 1)
    assert len(reads) < 20
    assert max(reads) <= limits.IGGY_READ_AHEAD_BYTES


async def test_what_is_not_there_or_was_read_is_answered_at_once(dialog: Dialog) -> None:
    await dialog.produce(producer_batch(*numbered(0, 100)), 100)
    await payloads(dialog, 0, 10)
    client = dialog.session._client
    handle = HANDLERS[Command.POLL_MESSAGES].handle
    for request, messages in (
        (asked(PollingKind.OFFSET, 100), 0),
        (asked(PollingKind.OFFSET, 50), 10),
        (asked(PollingKind.FIRST), 10),
        (asked(PollingKind.LAST), 10),
        (asked(PollingKind.NEXT), 10),
    ):
        reply = handle(request, Call(client, 0))
        assert isinstance(reply, replies.PolledMessages)
        assert reply.head == replies.Polled(0, 99, messages)


async def test_polls_are_the_same_whatever_was_polled_before(dialog: Dialog) -> None:
    chance = random.Random(5)
    end = 0
    while end < 600:
        size = chance.choice([1, 3, 200])
        await dialog.produce(producer_batch(*numbered(end, end + size)), size)
        end += size
    partition = find_topic(dialog.session._client.broker, STREAM, TOPIC).partition(0)
    kept = Kept(partition.memory)
    for _ in range(200):
        wanted = Wanted(chance.randrange(end + 2), chance.choice([1, 7, 150, 1000]))
        one = await poll(kept, partition, wanted)
        other = await poll(Kept(partition.memory), partition, wanted)
        assert content(one.parts) == content(other.parts)
        assert (one.messages, one.last_offset) == (other.messages, other.last_offset)
        assert one.messages == max(0, min(wanted.messages, end - wanted.start))


async def test_nothing_is_kept_beyond_the_log(dialog: Dialog) -> None:
    await dialog.produce(producer_batch(*numbered(0, 100)), 100)
    partition = find_topic(dialog.session._client.broker, STREAM, TOPIC).partition(0)
    assert await payloads(dialog, 0, 1) == numbered(0, 1)
    await partition.trim(40)
    assert await payloads(dialog, 0, 1) == numbered(40, 41)
    # A log that was reopened may have other messages at the same offsets.
    partition.leader_epoch += 1
    with counted_reads() as reads:
        assert await payloads(dialog, 50, 1) == numbered(50, 51)
    assert len(reads) == 1


async def test_what_is_kept_is_bounded_and_given_back(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_module, "IGGY_KEPT_BYTES", 10_000)
    server: IggyServer = dialog.session._client.server
    caches = server.broker.memory.caches
    before = caches.used
    await dialog.produce(producer_batch(*numbered(0, 100)), 100)
    await payloads(dialog, 0, 1)
    assert 5_000 < caches.used - before < 10_000
    server.kept.empty()
    assert caches.used == before
    assert await payloads(dialog, 5, 1) == numbered(5, 6)
    await dialog.produce(producer_batch(*numbered(100, 300)), 200)
    await payloads(dialog, 100, 1)
    assert caches.used == before, "one that is larger than all that may be kept"


def test_polls_are_remembered_but_for_those_with_more_behind_them() -> None:
    asked_for = asked(PollingKind.OFFSET, 7)
    body = bytes(asked_for.encode())
    assert requests.PollMessages.decode(body) is requests.PollMessages.decode(memoryview(body))
    remembered = requests._polled.cache_info().currsize
    for number in range(10):
        behind = number.to_bytes(100_000, "little")
        assert requests.PollMessages.decode(body + behind) == asked_for
    assert requests._polled.cache_info().currsize == remembered


@pytest.mark.parametrize("size", [0, 3, 4, 5, 15, 16, 17, 22, 400, 2**32 - 1])
def test_sends_are_read_the_same_whatever_they_say_of_their_size(size: int) -> None:
    to = (STREAM, TOPIC, Partitioning.partition(3))
    body = bytes(requests.SendMessages(size, *to, 2, memoryview(b"batch")).encode())
    for _ in range(2):  # of which the second one may be known
        read = requests.SendMessages.decode(body)
        assert read == Message.decode.__func__(requests.SendMessages, body)  # type: ignore[attr-defined]
        assert read.batch == b"batch"
    for end in range(len(body) - len(b"batch")):
        with pytest.raises(IggyError):
            requests.SendMessages.decode(body[:end])


def test_a_place_of_sends_is_read_once() -> None:
    to = (STREAM, TOPIC, Partitioning.partition(3))
    bodies = [requests.SendMessages(16, *to, 1, memoryview(each)).encode() for each in (b"a", b"b")]
    first, second = map(requests.SendMessages.decode, bodies)
    assert first.partitioning is second.partitioning
    assert (first.batch, second.batch) == (b"a", b"b")
