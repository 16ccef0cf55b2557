"""Goal: clients of before 2017 write and read what today's do, in Produce 0-2 and Fetch 0-3.

Method: a session without a socket; message sets are written and read by the tests' own model.
"""

from __future__ import annotations

import asyncio
import threading

import pytest

from kafka_dialog import TOPIC, Dialog
from message_sets import (
    NO_TIME,
    OLD_SQUEEZES,
    Message,
    framed,
    message_set,
    nullable,
    read,
    wrapped,
    write,
)
from patience import PATIENCE_SECONDS
from penstock.broker.reading import conversion
from penstock.broker.topics.partition import Partition
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka import message_sets
from penstock.kafka.wire import ErrorCode, api
from penstock.limits import KAFKA_PROMPT_FETCH_BYTES
from penstock.log.header import Magic, build_header, read_header, walk
from penstock.session import PeerError
from stored_batches import TIME, chunk_batch, entry, metadata

SOON = TIME // 1000
GOOD = [Message(b"one", b"key", SOON), Message(b"two", None, SOON + 1), Message(None, b"k", SOON)]
PRODUCE_VERSIONS = pytest.mark.parametrize("version", [0, 1, 2])
FETCH_VERSIONS = pytest.mark.parametrize("version", [0, 1, 2, 3])


def partition(dialog: Dialog) -> Partition:
    topic = dialog.broker.topics.by_kafka_name(TOPIC)
    assert topic is not None
    return topic.partition(0)


async def fetched(dialog: Dialog, offset: int, version: int, **options: object) -> bytes:
    """The set that a Fetch of this version gets, and how it says the end of the partition."""
    fields = dialog.fetch_fields((0, offset), **options)  # type: ignore[arg-type]  # any
    response = await dialog.ask("Fetch", version, **fields)
    (result,) = response.responses[0].partitions
    assert result.error_code == 0
    assert result.high_watermark == partition(dialog).end_offset
    return bytes(result.records)


def seen(magic: int, messages: list[Message], offset: int = 0) -> list[tuple[int, Message]]:
    """What a consumer gets of messages that were produced in sets of magic 1."""
    return [
        (magic, message._replace(offset=offset + row, time=message.time if magic else NO_TIME))
        for row, message in enumerate(messages)
    ]


class TestProduce:
    @PRODUCE_VERSIONS
    @pytest.mark.parametrize("magic", [0, 1])
    async def test_sets_of_both_magics(self, dialog: Dialog, magic: int, version: int) -> None:
        await dialog.create_topic()
        for times in range(2):
            result = await dialog.produce(message_set(magic, GOOD), version=version)
            assert (result.error_code, result.base_offset) == (0, 3 * times)
        stored = await dialog.fetch(0)
        headers = [header for _, header in walk(bytes(stored.records))]
        assert [(h.magic, h.base_offset, h.record_count) for h in headers] == [(2, 0, 3), (2, 3, 3)]
        found = read(await fetched(dialog, 0, 2))
        times = [message.time if magic else NO_TIME for message in GOOD] * 2
        assert [message.time for _, message in found] == times

    @pytest.mark.parametrize("name", OLD_SQUEEZES)
    async def test_compressed_sets_stay_compressed(self, dialog: Dialog, name: str) -> None:
        await dialog.create_topic()
        squeeze = OLD_SQUEEZES[name]
        messages = [Message(b"value %d" % n, time=SOON, offset=n) for n in range(500)]
        result = await dialog.produce(wrapped(0, messages, squeeze), version=0)
        assert (result.error_code, result.base_offset) == (0, 0)
        header = read_header(bytes((await dialog.fetch(0)).records))
        assert (header.record_count, header.attributes & 7) == (500, squeeze.codec)

    async def test_several_partitions_are_judged_one_by_one(self, dialog: Dialog) -> None:
        await dialog.create_topic(partitions=4)
        good = message_set(0, GOOD)
        fields = dialog.produce_fields((0, good), (1, good[:-1]), (9, good), (2, None), (3, good))
        (answer,) = (await dialog.ask("Produce", 0, **fields)).responses
        assert [(part.index, part.error_code) for part in answer.partition_responses] == [
            (0, 0),
            (1, ErrorCode.CORRUPT_MESSAGE),
            (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (2, ErrorCode.INVALID_RECORD),
            (3, 0),
        ]

    async def test_an_unknown_topic(self, dialog: Dialog) -> None:
        result = await dialog.produce(message_set(0, GOOD), version=0)
        assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    @pytest.mark.parametrize(
        ("data", "code"),
        [
            (message_set(1, GOOD)[:-1], ErrorCode.CORRUPT_MESSAGE),
            (message_set(1, GOOD)[:50], ErrorCode.CORRUPT_MESSAGE),
            (b"a message set", ErrorCode.CORRUPT_MESSAGE),
            (write(0, GOOD[0])[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE),
            (b"", ErrorCode.INVALID_RECORD),
            (framed(0, b"\0\0" + nullable(b"k") + b"\0\0\1\0abc"), ErrorCode.INVALID_RECORD),
            (write(0, Message(b"text", attributes=1)), ErrorCode.INVALID_RECORD),
            (write(1, Message(b"text", attributes=4)), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
            (write(1, Message(b"text", attributes=8)), ErrorCode.INVALID_TIMESTAMP),
            (write(1, Message(b"text", time=1 << 50)), ErrorCode.INVALID_TIMESTAMP),
            (write(1, Message(bytes(1 << 21))), ErrorCode.MESSAGE_TOO_LARGE),
            (bytes(encode_batch([Record(b"v")])[:-1]), ErrorCode.CORRUPT_MESSAGE),
        ],
    )
    @PRODUCE_VERSIONS
    async def test_what_is_refused(
        self, dialog: Dialog, version: int, data: bytes, code: ErrorCode
    ) -> None:
        await dialog.create_topic()
        result = await dialog.produce(data, version=version)
        assert (result.error_code, result.base_offset) == (code, -1)
        assert partition(dialog).end_offset == 0

    @pytest.mark.parametrize("large", [False, True])
    async def test_what_may_take_a_while_is_done_beside_the_loop(
        self, dialog: Dialog, monkeypatch: pytest.MonkeyPatch, large: bool
    ) -> None:
        """Also to look how much a compressed set holds, which may be in very many blocks."""
        await dialog.create_topic()
        threads = []

        def note(module: object, name: str) -> None:
            work = getattr(module, name)

            def noted(data: bytes) -> object:
                threads.append(threading.current_thread())
                return work(data)

            monkeypatch.setattr(module, name, noted)

        note(message_sets, "_to_batch")
        note(message_sets.records, "message_set_bytes")
        messages = [Message(bytes(20_000 if large else 20), time=SOON)]
        squeezed = message_set(0, messages) if large else wrapped(0, messages, OLD_SQUEEZES["lz4"])
        assert (await dialog.produce(squeezed, version=0)).error_code == 0
        here = threading.current_thread()
        assert len(threads) == 2
        assert here not in threads
        assert (await dialog.produce(message_set(0, GOOD), version=0)).error_code == 0
        assert threads[2:] == [here]

    async def test_a_batch_is_taken_as_kafka_takes_it(self, dialog: Dialog) -> None:
        await dialog.create_topic()
        result = await dialog.produce(encode_batch([Record(b"v")]), version=2)
        assert (result.error_code, result.base_offset) == (0, 0)

    async def test_requests_that_do_not_wait_are_written_in_their_order(
        self, dialog: Dialog
    ) -> None:
        """Though the first ones are compressed in threads, and the last needs no conversion."""
        await dialog.create_topic()
        many = [Message(b"%d" % n * 100, time=SOON) for n in range(2000)]
        answers = []
        for data, version in (
            (wrapped(1, many, OLD_SQUEEZES["gzip"]), 2),
            (message_set(0, GOOD), 0),
            (encode_batch([Record(b"last")]), 7),
        ):
            fields = dialog.produce_fields((0, data))
            answers.append(dialog.send("Produce", version, **fields))
        gathered = await asyncio.gather(*answers)
        results = [answer.responses[0].partition_responses[0] for answer in gathered]
        assert [(each.error_code, each.base_offset) for each in results] == [
            (0, 0),
            (0, 2000),
            (0, 2003),
        ]

    async def test_no_acks_get_no_answer_and_a_refusal_closes(self, dialog: Dialog) -> None:
        await dialog.create_topic()
        fields = dialog.produce_fields((0, message_set(0, GOOD)), acks=0)
        dialog.take(dialog.frame("Produce", 0, api("Produce").request(**fields)))
        await dialog.ended()
        assert not dialog.unawaited
        assert partition(dialog).end_offset == 3
        fields = dialog.produce_fields((0, b"nonsense"), acks=0)
        with pytest.raises(PeerError, match="acks 0"):
            dialog.take(dialog.frame("Produce", 0, api("Produce").request(**fields)))

    @pytest.mark.parametrize(("acks", "version"), [(1, 0), (-1, 0), (2, 0), (9, 0), (1, 1)])
    async def test_acks_of_the_first_protocol(
        self, dialog: Dialog, acks: int, version: int
    ) -> None:
        await dialog.create_topic()
        result = await dialog.produce(message_set(0, GOOD), version=version, acks=acks)
        assert (result.error_code, result.base_offset) == (0, 0)

    @pytest.mark.parametrize(("acks", "version"), [(-2, 0), (2, 1), (2, 2)])
    async def test_acks_that_nothing_stands_for(
        self, dialog: Dialog, acks: int, version: int
    ) -> None:
        await dialog.create_topic()
        result = await dialog.produce(message_set(0, GOOD), version=version, acks=acks)
        assert result.error_code == ErrorCode.INVALID_REQUIRED_ACKS


class TestFetch:
    @FETCH_VERSIONS
    @pytest.mark.parametrize("compressed", [False, True])
    async def test_what_todays_producers_write(
        self, dialog: Dialog, version: int, compressed: bool
    ) -> None:
        await dialog.create_topic()
        if compressed:
            await dialog.produce(wrapped(1, GOOD, OLD_SQUEEZES["lz4"]), version=2)
        else:
            records = [Record(m.value, m.key, [("h", b"x")], timestamp_ms=m.time) for m in GOOD]
            await dialog.produce(encode_batch(records))
        magic = 0 if version < 2 else 1
        assert read(await fetched(dialog, 0, version)) == seen(magic, GOOD)

    @FETCH_VERSIONS
    async def test_it_begins_with_the_message_at_the_offset(
        self, dialog: Dialog, version: int
    ) -> None:
        await dialog.create_topic()
        for _ in range(3):
            await dialog.produce(wrapped(1, GOOD, OLD_SQUEEZES["gzip"]), version=2)
        for offset in range(10):
            found = read(await fetched(dialog, offset, version))
            assert [message.offset for _, message in found] == list(range(offset, 9))

    @FETCH_VERSIONS
    @pytest.mark.parametrize("replica_id", [-1, -2])
    async def test_replica_ids_of_clients(
        self, dialog: Dialog, version: int, replica_id: int
    ) -> None:
        """-1 is an ordinary consumer, -2 one that looks for faults: it sees the same."""
        await dialog.create_topic()
        await dialog.produce(message_set(0, GOOD), version=0)
        assert len(read(await fetched(dialog, 0, version, replica_id=replica_id))) == 3

    @pytest.mark.parametrize("version", [0, 1, 2])
    async def test_a_set_is_cut_at_the_bytes_that_are_wanted(
        self, dialog: Dialog, version: int
    ) -> None:
        await dialog.create_topic()
        await dialog.produce(message_set(1, [Message(b"v" * 100, time=SOON)] * 50), version=2)
        whole = await fetched(dialog, 10, version)
        for size in (0, 1, 11, 12, 40, 126, 200, 1000, len(whole) - 1):
            assert await fetched(dialog, 10, version, partition_max_bytes=size) == whole[:size]

    async def test_version_3_has_one_whole_message_at_least(self, dialog: Dialog) -> None:
        await dialog.create_topic(partitions=2)
        messages = message_set(1, [Message(b"v" * 100, time=SOON)] * 50)
        for index in (0, 1):
            await dialog.produce(messages, index, version=2)
        whole = await fetched(dialog, 10, 3)
        first = len(whole) // 40
        for size, wanted in ((0, first), (1, first), (first + 1, first + 1), (1000, 1000)):
            assert await fetched(dialog, 10, 3, partition_max_bytes=size) == whole[:wanted]
        # Of the whole answer the first message only: the second partition's is left out.
        fields = dialog.fetch_fields((0, 10), (1, 10), max_bytes=50)
        (answer,) = (await dialog.ask("Fetch", 3, **fields)).responses
        sizes = [len(bytes(part.records)) for part in answer.partitions]
        assert sizes == [first, 0]

    @FETCH_VERSIONS
    async def test_a_message_larger_than_what_others_get_at_once(
        self, dialog: Dialog, version: int
    ) -> None:
        size = KAFKA_PROMPT_FETCH_BYTES + 1000
        await dialog.create_topic(max_message_bytes=str(2 * size))
        large = Message(b"v" * size, time=SOON)
        await dialog.produce(write(1, large), version=2)
        found = await fetched(dialog, 0, version, partition_max_bytes=2 * size, max_bytes=2 * size)
        assert read(found) == seen(int(version > 1), [large])

    @FETCH_VERSIONS
    async def test_what_other_protocols_wrote(self, dialog: Dialog, version: int) -> None:
        """Also where a stretch of the log says nothing to a Kafka consumer."""
        await dialog.create_topic()
        written = partition(dialog)
        for _ in range(2):
            written.append([bytearray(chunk_batch([b"never", b"ended"], 0))])
        body = entry(metadata(partition_key="key", event_time=SOON), b"of pulsar")
        times = {"base_timestamp": SOON, "max_timestamp": SOON}
        made = build_header(Magic.PULSAR, body, record_count=1, **times)
        await written.durable(written.append([made + body]))
        wanted = seen(int(version > 1), [Message(b"of pulsar", b"key", SOON)], 2)
        assert read(await fetched(dialog, 0, version)) == wanted
        # Converted or read as few bytes as a client can ask for.
        assert read(await fetched(dialog, 0, version, partition_max_bytes=200)) == wanted

    @FETCH_VERSIONS
    async def test_the_end_is_empty_and_beyond_is_out_of_range(
        self, dialog: Dialog, version: int
    ) -> None:
        await dialog.create_topic()
        await dialog.produce(message_set(0, GOOD), version=0)
        assert await fetched(dialog, 3, version) == b""
        fields = dialog.fetch_fields((0, 4))
        (result,) = (await dialog.ask("Fetch", version, **fields)).responses[0].partitions
        assert result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    async def test_a_fetch_waits_for_a_message_set(self, dialog: Dialog) -> None:
        await dialog.create_topic()
        waiting = dialog.send("Fetch", 0, **dialog.fetch_fields((0, 0), max_wait_ms=30_000))
        other = Dialog(dialog.broker)
        await other.produce(message_set(0, GOOD), version=0)
        async with asyncio.timeout(PATIENCE_SECONDS):
            (result,) = (await waiting).responses[0].partitions
        assert read(bytes(result.records)) == seen(0, GOOD)

    async def test_a_stretch_is_converted_once(
        self, dialog: Dialog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A consumer with a small buffer reads a large batch in many steps."""
        await dialog.create_topic()
        many = [Message(b"%d" % n * 100, time=SOON) for n in range(3000)]
        await dialog.produce(wrapped(1, many, OLD_SQUEEZES["gzip"]), version=2)
        conversions = 0
        convert = conversion.records.convert

        def counted(*arguments: object) -> object:
            nonlocal conversions
            conversions += 1
            return convert(*arguments)  # type: ignore[arg-type]  # as it was called

        monkeypatch.setattr(conversion.records, "convert", counted)
        offset, steps = 0, 0
        while offset < 3000:
            found = read(await fetched(dialog, offset, 0, partition_max_bytes=50_000))
            assert [message.offset for _, message in found][:1] == [offset]
            offset = found[-1][1].offset + 1
            steps += 1
        assert steps > 10
        assert conversions == 1
