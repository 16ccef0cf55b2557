"""What is checked before a batch is stored, what is stamped, and how polls cut it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iggy_dialog import (
    ORIGIN_US,
    STREAM,
    TOPIC,
    Dialog,
    batch_checksum,
    header_bytes,
    message_frame,
    polled_batches,
    producer_batch,
)
from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.topics.names import TopicName
from penstock.iggy.batches import Stored, cut
from penstock.iggy.wire import requests
from penstock.iggy.wire.batch import BatchHeader, read_batch_header
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode
from penstock.iggy.wire.identifiers import (
    Consumer,
    ConsumerKind,
    Identifier,
    PollingKind,
    PollingStrategy,
)
from penstock.log.header import Magic, checksum_matches, read_header

BATCH = producer_batch(b"one", b"two", b"three")


def restated(frames: list[bytes], count: int | None = None) -> bytes:
    """A batch whose header is right for these frames."""
    size = 256 + sum(map(len, frames))
    header = BatchHeader(0, 0, 0, ORIGIN_US, size, 0, len(frames) if count is None else count)
    header = header._replace(batch_checksum=batch_checksum(header, frames))
    return header_bytes(header) + b"".join(frames)


def one(payload: bytes = b"x", headers: bytes = b"") -> bytes:
    """A batch of one message."""
    return restated([message_frame(0, payload, headers)])


def field(size: int, kind: int = 2) -> bytes:
    """A user header's name, or its value."""
    return bytes((kind,)) + size.to_bytes(4, "little") + bytes(size)


LARGEST_HEADER = 2 * field(255)


def flipped(position: int) -> bytes:
    batch = bytearray(BATCH)
    batch[position] ^= 1
    return bytes(batch)


@pytest.mark.parametrize(
    ("batch", "count", "code"),
    [
        (BATCH[:-1], 3, ErrorCode.INVALID_MESSAGES_SIZE),
        (BATCH + b"\0", 3, ErrorCode.INVALID_MESSAGES_SIZE),
        (BATCH[:255], 3, ErrorCode.INVALID_MESSAGES_SIZE),
        (b"", 0, ErrorCode.INVALID_MESSAGES_SIZE),
        (restated([]), 0, ErrorCode.INVALID_MESSAGES_COUNT),
        (BATCH, 2, ErrorCode.INVALID_MESSAGES_COUNT),
        (flipped(48), 2, ErrorCode.INVALID_MESSAGES_SIZE),
        (flipped(100), 3, ErrorCode.INVALID_MESSAGES_SIZE),
        (flipped(24), 3, ErrorCode.INVALID_BATCH_CHECKSUM),
        (flipped(40), 3, ErrorCode.INVALID_BATCH_CHECKSUM),
        (flipped(256 + 48), 3, ErrorCode.INVALID_MESSAGE_CHECKSUM),
        (flipped(256 + 8), 3, ErrorCode.INVALID_MESSAGE_CHECKSUM),
        (flipped(256 + 35), 3, ErrorCode.INVALID_MESSAGES_SIZE),
        (flipped(256 + 40), 3, ErrorCode.INVALID_MESSAGES_SIZE),
        (restated([message_frame(1, b"x")]), 1, ErrorCode.INVALID_MESSAGES_COUNT),
        (one(b""), 1, ErrorCode.INVALID_MESSAGE_PAYLOAD_LENGTH),
        (one(headers=field(1)), 1, ErrorCode.INVALID_HEADER_VALUE),
        (one(headers=field(1) + field(0)), 1, ErrorCode.INVALID_HEADER_VALUE),
        (one(headers=field(1) + field(256)), 1, ErrorCode.INVALID_HEADER_VALUE),
        (one(headers=field(1) + field(1, kind=16)), 1, ErrorCode.INVALID_HEADER_KIND),
        (one(headers=field(1, kind=0) + field(1)), 1, ErrorCode.INVALID_HEADER_KIND),
        (one(headers=field(0) + field(8)), 1, ErrorCode.INVALID_HEADER_KEY),
        (one(headers=field(256) + field(1)), 1, ErrorCode.INVALID_HEADER_KEY),
        (one(headers=b"\2\2\0\0\0k"), 1, ErrorCode.INVALID_HEADER_KEY),
        (one(headers=LARGEST_HEADER * 193), 1, ErrorCode.TOO_BIG_USER_HEADERS),
    ],
)
async def test_batch_that_is_wrong_is_refused_and_nothing_is_stored(
    broker: Broker, dialog: Dialog, batch: bytes, count: int, code: ErrorCode
) -> None:
    answer = await dialog.produce(batch, count)
    assert (ErrorCode(answer.status), answer.body) == (code, b"")
    topic = broker.topics.get(TopicName("public", "s", "t"))
    assert topic is not None
    assert topic.partition(0).end_offset == 0


async def test_payload_over_the_limit_is_refused_and_one_at_the_limit_is_not(
    broker: Broker, dialog: Dialog
) -> None:
    limit = limits.IGGY_PAYLOAD_BYTES
    answer = await dialog.produce(one(bytes(limit + 1)), 1)
    assert answer.status == ErrorCode.TOO_BIG_MESSAGE_PAYLOAD
    assert (await dialog.produce(one(bytes(limit)), 1)).status == 0


async def test_user_headers_within_the_limit_are_taken(dialog: Dialog) -> None:
    answer = await dialog.produce(one(headers=LARGEST_HEADER * 192), 1)
    assert answer.status == 0


async def test_stored_batch_is_stamped_and_its_checksums_hold(
    broker: Broker, dialog: Dialog
) -> None:
    for number in range(3):
        answer = await dialog.produce(BATCH, 3)
        base_offset = (3 * number).to_bytes(8, "little")
        assert answer == (0, bytes.fromhex("01000000") + bytes(12) + base_offset, 0)
    topic = broker.topics.get(TopicName("public", "s", "t"))
    assert topic is not None
    stored = b"".join(await topic.partition(0).read(4, 1, Magic.IGGY))
    assert checksum_matches(stored)
    header = read_header(stored)
    assert (header.magic, header.base_offset, header.record_count) == (Magic.IGGY, 3, 3)
    assert header.base_timestamp == ORIGIN_US // 1000
    body = bytes(stored)[61:]
    own = read_batch_header(body)
    assert own.base_offset == 3
    assert header.max_timestamp == own.base_timestamp // 1000 > ORIGIN_US // 1000
    assert body[256:] == BATCH[256:]
    _, [(_, frames)] = polled_batches(bytes(16) + body)
    assert own.batch_checksum == batch_checksum(own, frames)


async def test_poll_hands_out_the_stored_batch_itself(broker: Broker, dialog: Dialog) -> None:
    await dialog.produce(BATCH, 3)
    await dialog.produce(BATCH, 3)
    head, batches = polled_batches((await dialog.ask(Command.POLL_MESSAGES, poll(0, 99))).body)
    assert (head.partition_id, head.current_offset, head.messages_count) == (0, 5, 6)
    assert [header.base_offset for header, _ in batches] == [0, 3]
    assert b"".join(batches[1][1]) == BATCH[256:]


async def test_damaged_batch_is_an_error_and_never_silence(
    broker: Broker, dialog: Dialog, tmp_path: Path
) -> None:
    for _ in range(3):
        await dialog.produce(BATCH, 3)
    damage_the_middle(tmp_path)
    head, _ = polled_batches((await dialog.ask(Command.POLL_MESSAGES, poll(0, 99))).body)
    assert head.messages_count == 3
    answer = await dialog.ask(Command.POLL_MESSAGES, poll(3, 99))
    assert (answer.status, answer.body) == (ErrorCode.CANNOT_READ_MESSAGE, b"")
    head, _ = polled_batches((await dialog.ask(Command.POLL_MESSAGES, poll(6, 99))).body)
    assert head.messages_count == 3


async def test_poll_ends_before_it_grows_too_large(dialog: Dialog) -> None:
    batch = producer_batch(*[bytes(1_000_000)] * 7)
    for _ in range(3):
        await dialog.produce(batch, 7)
    head, _ = polled_batches((await dialog.ask(Command.POLL_MESSAGES, poll(0, 99))).body)
    assert head.messages_count == 14
    head, _ = polled_batches((await dialog.ask(Command.POLL_MESSAGES, poll(14, 99))).body)
    assert head.messages_count == 7
    large = producer_batch(*[bytes(1_000_000)] * 20)
    await dialog.produce(large, 20)
    head, _ = polled_batches((await dialog.ask(Command.POLL_MESSAGES, poll(21, 99))).body)
    assert head.messages_count == 20


def damage_the_middle(folder: Path) -> None:
    (file,) = folder.rglob("*.log")
    stored = bytearray(file.read_bytes())
    stored[len(stored) // 2] ^= 1
    with file.open("r+b") as written:
        written.write(stored)


def poll(offset: int, count: int) -> requests.PollMessages:
    consumer = Consumer(ConsumerKind.CONSUMER, Identifier(1))
    strategy = PollingStrategy(PollingKind.OFFSET, offset)
    return requests.PollMessages(consumer, STREAM, TOPIC, 0, strategy, count, False)


@given(
    st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=12),
    st.integers(0, 2**40),
    st.integers(-3, 15),
    st.integers(1, 15),
)
def test_cut_is_the_frames_that_were_asked_for_behind_a_sound_header(
    payloads: list[bytes], base_offset: int, skip: int, count: int
) -> None:
    batch = bytearray(producer_batch(*payloads))
    batch[8:16] = base_offset.to_bytes(8, "little")
    _, [(original, _)] = polled_batches(bytes(16) + bytes(batch))
    last = base_offset + len(payloads) - 1
    taken = cut(Stored.of(last, memoryview(batch)), base_offset + skip, count)
    wanted = payloads[max(0, skip) : max(0, skip) + count]
    assert taken.messages == len(wanted)
    if not wanted:
        assert (taken.parts, taken.last_offset) == ([], -1)
        return
    assert taken.last_offset == base_offset + max(0, skip) + len(wanted) - 1
    _, [(header, frames)] = polled_batches(bytes(16) + b"".join(map(bytes, taken.parts)))
    assert [frame[48:] for frame in frames] == wanted
    assert header.message_count == len(wanted)
    assert (header.base_offset, header.origin_timestamp) == (base_offset, ORIGIN_US)
    if taken.messages < len(payloads):
        assert header.batch_checksum == batch_checksum(header, frames)
    else:
        assert header == original


async def test_two_connections_that_send_at_once_get_offsets_of_their_own(
    broker: Broker, dialog: Dialog
) -> None:
    other = Dialog(broker)
    await other.log_in()
    answers = await asyncio.gather(*(each.produce(BATCH, 3) for each in [dialog, other] * 10))
    offsets = sorted(int.from_bytes(answer.body[16:], "little") for answer in answers)
    assert offsets == list(range(0, 60, 3))
