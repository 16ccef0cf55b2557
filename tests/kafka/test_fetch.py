"""Goal: readers get whole batches, soon, within limits, and a clear error where there are none.

Method: a session without a socket over a real broker; the clock that matters is max_wait_ms.
"""

from __future__ import annotations

import asyncio
import time
from uuid import uuid4

import pytest

from kafka_dialog import TOPIC, WAIT_SECONDS, Dialog
from partition_logs import log_of
from patience import PATIENCE_SECONDS, lasted
from penstock.broker.broker import Broker
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.handlers import reading
from penstock.kafka.wire import ErrorCode, Struct, api
from penstock.limits import KAFKA_PROMPT_FETCH_BYTES
from penstock.log.header import Magic, build_header, walk
from rewriting import leave_out
from stored_batches import entry, metadata

LONG_MS = 60_000


def batch(value: bytes = b"value", count: int = 1) -> bytearray:
    return encode_batch([Record(value, timestamp_ms=1)] * count)


def offsets(result: Struct) -> list[int]:
    """The base offsets of the batches in an answer."""
    return [header.base_offset for _, header in walk(bytes(result.records))]


async def test_every_version_with_batches_reads(dialog: Dialog) -> None:
    topic_id = await dialog.create_topic()
    await dialog.produce(batch(count=2))
    for version in range(4, 19):
        fields = dialog.fetch_fields((0, 0))
        fields["topics"][0].topic_id = topic_id  # type: ignore[index]  # the one topic
        response = await dialog.ask("Fetch", version, **fields)
        (result,) = response.responses[0].partitions
        assert (result.error_code, result.high_watermark, result.last_stable_offset) == (0, 2, 2)
        assert result.aborted_transactions is None
        assert offsets(result) == [0]
        assert response.session_id == 0


async def test_stored_batches_are_the_producers_bytes(dialog: Dialog) -> None:
    await dialog.create_topic()
    sent = batch(b"\x00\xffvalue", count=5)
    await dialog.produce(sent)
    result = await dialog.fetch(0)
    assert bytes(result.records)[16:] == sent[16:]


async def test_an_offset_inside_a_batch_gets_the_whole_batch(dialog: Dialog) -> None:
    await dialog.create_topic()
    await dialog.produce(batch(count=5))
    await dialog.produce(batch(count=5))
    assert offsets(await dialog.fetch(7)) == [5]
    assert offsets(await dialog.fetch(2)) == [0, 5]


async def test_the_end_is_empty_and_beyond_it_is_out_of_range(dialog: Dialog) -> None:
    await dialog.create_topic()
    await dialog.produce(batch())
    end = await dialog.fetch(1)
    assert (end.error_code, end.records, end.high_watermark, end.log_start_offset) == (0, b"", 1, 0)
    for offset in (2, -1):
        result = await dialog.fetch(offset)
        assert result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (result.high_watermark, result.log_start_offset) == (-1, -1)


async def test_the_first_batch_is_whole_and_the_rest_within_limits(dialog: Dialog) -> None:
    await dialog.create_topic(partitions=2)
    for _ in range(3):
        await dialog.produce(batch(bytes(1000)))
        await dialog.produce(batch(bytes(1000)), partition=1)
    assert offsets(await dialog.fetch(0, partition_max_bytes=1)) == [0]
    assert offsets(await dialog.fetch(0, max_bytes=1)) == [0]
    assert offsets(await dialog.fetch(0, partition_max_bytes=2500)) == [0, 1]
    response = await dialog.ask("Fetch", 12, **dialog.fetch_fields((0, 0), (1, 0), max_bytes=1500))
    first, second = response.responses[0].partitions
    assert (offsets(first), offsets(second)) == ([0], [])
    assert second.high_watermark == 3
    response = await dialog.ask("Fetch", 12, **dialog.fetch_fields((0, 0), (1, 0), max_bytes=4000))
    first, second = response.responses[0].partitions
    assert (offsets(first), offsets(second)) == ([0, 1, 2], [])
    response = await dialog.ask("Fetch", 12, **dialog.fetch_fields((0, 3), (1, 0), max_bytes=1))
    assert offsets(response.responses[0].partitions[1]) == [0]


async def test_who_asks_for_no_minimum_soon_gets_a_part(dialog: Dialog) -> None:
    await dialog.create_topic()
    for _ in range(4):
        await dialog.produce(batch(bytes(KAFKA_PROMPT_FETCH_BYTES // 3)))
    large = {"partition_max_bytes": 8 << 20, "max_bytes": 8 << 20}
    for minimum in (0, 1):
        assert offsets(await dialog.fetch(0, min_bytes=minimum, **large)) == [0, 1]
    assert offsets(await dialog.fetch(2, min_bytes=1, **large)) == [2, 3]
    assert offsets(await dialog.fetch(0, min_bytes=2, **large)) == [0, 1, 2, 3]


async def test_what_goes_from_the_file_comes_all_at_once(broker: Broker) -> None:
    dialog = Dialog(broker, sends_files=True)
    await dialog.create_topic()
    for _ in range(4):
        await dialog.produce(batch(bytes(KAFKA_PROMPT_FETCH_BYTES // 3)))
    large = {"partition_max_bytes": 8 << 20, "max_bytes": 8 << 20}
    assert offsets(await dialog.fetch(0, min_bytes=1, **large)) == [0, 1, 2, 3]
    less = {"partition_max_bytes": KAFKA_PROMPT_FETCH_BYTES, "max_bytes": 8 << 20}
    assert offsets(await dialog.fetch(0, min_bytes=1, **less)) == [0, 1]
    less = {"partition_max_bytes": 8 << 20, "max_bytes": KAFKA_PROMPT_FETCH_BYTES}
    assert offsets(await dialog.fetch(2, min_bytes=1, **less)) == [2, 3]


async def test_a_full_answer_costs_no_more_reads_but_tells_errors(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await dialog.create_topic(partitions=4)
    for index in range(4):
        await dialog.produce(batch(bytes(1000)), partition=index)
    found = dialog.broker.topics.by_kafka_name(TOPIC)
    assert found is not None
    monkeypatch.setattr(found.partition(3), "read_on", None)
    fields = dialog.fetch_fields((0, 0), (1, 0), (3, 0), (3, 9), max_bytes=1500)
    response = await dialog.ask("Fetch", 12, **fields)
    results = response.responses[0].partitions
    assert [offsets(each) for each in results] == [[0], [], [], []]
    assert [each.error_code for each in results] == [0, 0, 0, ErrorCode.OFFSET_OUT_OF_RANGE]
    assert [each.high_watermark for each in results] == [1, 1, 1, -1]


async def test_a_waiting_fetch_is_woken_by_an_append(dialog: Dialog) -> None:
    await dialog.create_topic(partitions=2)
    waiting = dialog.send("Fetch", 12, **dialog.fetch_fields((0, 0), (1, 0), max_wait_ms=LONG_MS))
    await asyncio.sleep(0)
    assert not waiting.done()
    await Dialog(dialog.broker).produce(batch(), partition=1)
    response = await asyncio.wait_for(waiting, WAIT_SECONDS)
    assert [offsets(each) for each in response.responses[0].partitions] == [[], [0]]


async def test_a_waiting_fetch_waits_for_enough(dialog: Dialog) -> None:
    await dialog.create_topic()
    other = Dialog(dialog.broker)
    waiting = dialog.send(
        "Fetch", 12, **dialog.fetch_fields((0, 0), max_wait_ms=LONG_MS, min_bytes=2500)
    )
    for _ in range(2):
        await other.produce(batch(bytes(1000)))
    assert not waiting.done()
    await other.produce(batch(bytes(1000)))
    response = await asyncio.wait_for(waiting, WAIT_SECONDS)
    assert offsets(response.responses[0].partitions[0]) == [0, 1, 2]


async def test_the_wait_ends_with_its_time_and_brings_what_there_is(dialog: Dialog) -> None:
    await dialog.create_topic()
    await dialog.produce(batch())
    began = time.monotonic()
    result = await dialog.fetch(0, max_wait_ms=50, min_bytes=1_000_000)
    assert lasted(began, 0.05)
    assert offsets(result) == [0]


async def test_an_error_ends_the_wait_at_once(dialog: Dialog) -> None:
    await dialog.create_topic()
    response = await dialog.ask(
        "Fetch", 12, **dialog.fetch_fields((0, 0), (5, 0), max_wait_ms=LONG_MS)
    )
    codes = [each.error_code for each in response.responses[0].partitions]
    assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_a_topic_that_is_deleted_ends_the_wait(dialog: Dialog) -> None:
    await dialog.create_topic()
    waiting = dialog.send("Fetch", 12, **dialog.fetch_fields((0, 0), max_wait_ms=LONG_MS))
    await asyncio.sleep(0)
    topic = api("DeleteTopics").request.DeleteTopicState(name=TOPIC)
    await Dialog(dialog.broker).ask("DeleteTopics", 6, topics=[topic])
    response = await asyncio.wait_for(waiting, WAIT_SECONDS)
    (result,) = response.responses[0].partitions
    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_nobody_listens_when_nobody_waits(dialog: Dialog) -> None:
    await dialog.create_topic()
    await dialog.fetch(0, max_wait_ms=1)
    topic = dialog.broker.topics.by_kafka_name(TOPIC)
    assert topic is not None
    assert topic.partition(0)._listeners == []


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(-1, 0), (0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH), (-2, ErrorCode.FENCED_LEADER_EPOCH)],
)
async def test_other_leader_epochs_are_refused(dialog: Dialog, epoch: int, code: int) -> None:
    await dialog.create_topic()
    fields = dialog.fetch_fields((0, 0))
    fields["topics"][0].partitions[0].current_leader_epoch = epoch  # type: ignore[index]  # the one
    response = await dialog.ask("Fetch", 12, **fields)
    assert response.responses[0].partitions[0].error_code == code


async def test_an_unknown_id_is_its_own_error(dialog: Dialog) -> None:
    fields = dialog.fetch_fields((0, 0))
    fields["topics"][0].topic_id = uuid4()  # type: ignore[index]  # the one topic
    response = await dialog.ask("Fetch", 18, **fields)
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_a_damaged_batch_is_told_and_costs_no_other(dialog: Dialog) -> None:
    await dialog.create_topic()
    for value in (b"first", b"damaged", b"third"):
        await dialog.produce(batch(value))
    found = dialog.broker.topics.by_kafka_name(TOPIC)
    assert found is not None
    (segment,) = log_of(found.partition(0)).directory.glob("*.log")
    stored = segment.read_bytes()
    segment.write_bytes(stored.replace(b"damaged", b"Damaged"))
    assert offsets(await dialog.fetch(0)) == [0]
    result = await dialog.fetch(1)
    assert (result.error_code, result.records) == (ErrorCode.CORRUPT_MESSAGE, b"")
    assert offsets(await dialog.fetch(2)) == [2]


async def test_nothing_to_read_is_answered_at_once(dialog: Dialog) -> None:
    response = await dialog.ask("Fetch", 12, max_wait_ms=LONG_MS, min_bytes=1)
    assert response.responses == []


async def test_who_would_not_wait_still_gets_what_has_to_be_converted(dialog: Dialog) -> None:
    await dialog.create_topic()
    topic = dialog.broker.topics.by_kafka_name(TOPIC)
    assert topic is not None
    body = bytes(entry(metadata(), bytes(1 << 20)))
    times = {"base_timestamp": 1, "max_timestamp": 1}
    header = build_header(Magic.PULSAR, body, record_count=1, **times)
    topic.partition(0).append([header, body])
    await topic.partition(0).flushed()
    result = await dialog.fetch(0, max_wait_ms=0)
    assert offsets(result) == [0]


async def test_what_waits_is_in_the_budget_for_memory(dialog: Dialog) -> None:
    await dialog.create_topic()
    used = dialog.broker.memory.reads
    fields = dialog.fetch_fields(*[(0, 0)] * 400, max_wait_ms=LONG_MS)
    waiting = dialog.send("Fetch", 12, **fields)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not used.used:
            await asyncio.sleep(0)
    assert not waiting.done()
    assert used.used > 400 * 400
    await dialog.produce(batch(b"value"))
    await waiting
    assert used.used == 0


async def test_an_answer_about_very_many_partitions_does_not_wait_for_long(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.limits.KAFKA_LARGE_FETCH_SECONDS", 0.05)
    await dialog.create_topic()
    fields = dialog.fetch_fields(*[(0, 0)] * 600, max_wait_ms=10 * LONG_MS)
    response = await dialog.ask("Fetch", 12, **fields)
    assert len(response.responses[0].partitions) == 600
    assert dialog.broker.memory.reads.used == 0


@pytest.mark.parametrize(
    ("passed_at_most", "found"), [(256, [3]), (2, [1]), (1, [0])], ids=["all", "two", "one"]
)
async def test_what_compaction_has_emptied_is_passed(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch, passed_at_most: int, found: list[int]
) -> None:
    """Kafka's C client takes an answer without any message for one that was too small: it asks for
    twice as much each time, and in the end fails.
    """
    monkeypatch.setattr(reading, "_PASSED_READS", passed_at_most)
    await dialog.create_topic()
    topic = dialog.broker.topics.by_kafka_name(TOPIC)
    assert topic is not None
    log = log_of(topic.partition(0))
    for _ in range(4):
        await dialog.produce(batch())
        await log.roll()
    for offset in range(3):
        await leave_out(log, offset, offset + 1, lambda _: False)
    assert offsets(await dialog.fetch(0)) == found


async def test_a_gap_at_the_end_is_said(dialog: Dialog) -> None:
    """Else a client would not get on to the end."""
    await dialog.create_topic()
    topic = dialog.broker.topics.by_kafka_name(TOPIC)
    assert topic is not None
    log = log_of(topic.partition(0))
    for _ in range(2):
        await dialog.produce(batch())
        await log.roll()
        await leave_out(log, log.end_offset - 1, log.end_offset, lambda _: False)
    assert offsets(await dialog.fetch(0)) == [1]
