"""Goal: ends and times of a partition are told to the record. Method: a session, no socket."""

from __future__ import annotations

import pytest

from kafka_dialog import TOPIC, Dialog
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.wire import ErrorCode, Struct, api


async def look_up(dialog: Dialog, timestamp: int, version: int = 11, **fields: object) -> Struct:
    request = api("ListOffsets").request
    part = request.ListOffsetsPartition(**{"partition_index": 0, "timestamp": timestamp, **fields})
    topic = request.ListOffsetsTopic(name=TOPIC, partitions=[part])
    response = await dialog.ask("ListOffsets", version, replica_id=-1, topics=[topic])
    result: Struct = response.topics[0].partitions[0]
    return result


async def produce(dialog: Dialog, *timestamps: int) -> None:
    batch = [Record(b"value", timestamp_ms=timestamp) for timestamp in timestamps]
    assert (await dialog.produce(encode_batch(batch))).error_code == 0


@pytest.mark.parametrize(
    ("timestamp", "found"), [(0, (20, 2)), (20, (20, 2)), (25, (50, 3)), (60, (-1, -1))]
)
async def test_what_was_deleted_from_a_batch_is_not_found(
    dialog: Dialog, timestamp: int, found: tuple[int, int]
) -> None:
    """Who went there would be out of range, and begin at the end instead."""
    await dialog.create_topic()
    await produce(dialog, 10, 30, 20)
    await produce(dialog, 50, 40)
    types = api("DeleteRecords").request
    partition = types.DeleteRecordsPartition(partition_index=0, offset=2)
    topic = types.DeleteRecordsTopic(name=TOPIC, partitions=[partition])
    await dialog.ask("DeleteRecords", topics=[topic], timeout_ms=1000)
    result = await look_up(dialog, timestamp)
    assert (result.timestamp, result.offset) == found


async def test_the_end_is_behind_what_was_answered_before_it_was_safe(dialog: Dialog) -> None:
    """As `end_offsets` of a client that produces with acks=1 expects it."""
    await dialog.create_topic()
    for number in range(1, 20):
        batch = encode_batch([Record(b"value", timestamp_ms=number)])
        assert (await dialog.produce(batch, acks=1)).error_code == 0
        assert (await look_up(dialog, -1)).offset == number


@pytest.mark.parametrize("version", range(1, 12))
async def test_every_version_tells_the_ends(dialog: Dialog, version: int) -> None:
    await dialog.create_topic()
    await produce(dialog, 1, 2, 3)
    latest, earliest = await look_up(dialog, -1, version), await look_up(dialog, -2, version)
    assert (latest.error_code, latest.offset, latest.timestamp) == (0, 3, -1)
    assert (earliest.error_code, earliest.offset) == (0, 0)


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (0, (10, 0)),
        (10, (10, 0)),
        (11, (30, 1)),
        (20, (30, 1)),
        (31, (50, 3)),
        (40, (50, 3)),
        (50, (50, 3)),
        (51, (70, 5)),
        (71, (-1, -1)),
    ],
)
async def test_a_time_finds_the_first_record_that_is_not_older(
    dialog: Dialog, timestamp: int, found: tuple[int, int]
) -> None:
    await dialog.create_topic()
    await produce(dialog, 10, 30, 20)
    await produce(dialog, 50, 40)
    await produce(dialog, 70)
    result = await look_up(dialog, timestamp)
    assert (result.timestamp, result.offset) == found
    assert result.leader_epoch == (0 if found[1] >= 0 else -1)


async def test_the_first_version_lists_where_segments_begin(dialog: Dialog) -> None:
    await dialog.create_topic(segment_bytes=str(1 << 20))
    for timestamp in (10, 20, 30):
        large = [Record(bytes(600_000), timestamp_ms=timestamp)]
        assert (await dialog.produce(encode_batch(large))).error_code == 0

    async def asked(timestamp: int, count: int = 9) -> list[int]:
        result = await look_up(dialog, timestamp, 0, max_num_offsets=count)
        assert result.error_code == 0
        return list(result.old_style_offsets)

    assert await asked(-1) == [3, 2, 1, 0]
    assert await asked(-1, 1) == [3]
    assert await asked(-1, 0) == await asked(-1, -5) == []
    assert await asked(-2) == await asked(-2, 1) == [0]
    assert await asked(9) == await asked(-3) == []
    assert await asked(10) == await asked(19) == [0]
    assert await asked(25) == [1, 0]
    assert await asked(30) == await asked(1 << 40) == [2, 1, 0]
    assert await asked(1 << 42) == [3, 2, 1, 0], "a time that is yet to come has the end too"


async def test_the_first_version_of_an_empty_log(dialog: Dialog) -> None:
    await dialog.create_topic()
    for timestamp in (-1, -2, 1 << 42):
        result = await look_up(dialog, timestamp, 0, max_num_offsets=9)
        assert (result.error_code, list(result.old_style_offsets)) == (0, [0])


async def test_the_largest_time_is_found_wherever_it_is(dialog: Dialog) -> None:
    await dialog.create_topic()
    assert (await look_up(dialog, -3)).offset == -1
    await produce(dialog, 10, 90, 20)
    await produce(dialog, 80)
    result = await look_up(dialog, -3)
    assert (result.timestamp, result.offset) == (90, 1)


async def test_special_times_come_with_their_versions(dialog: Dialog) -> None:
    await dialog.create_topic()
    for timestamp, first in ((-3, 7), (-4, 8), (-5, 9), (-6, 11)):
        refused = await look_up(dialog, timestamp, first - 1)
        assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert (await look_up(dialog, timestamp, first)).error_code == 0
    assert (await look_up(dialog, -4)).offset == 0
    assert (await look_up(dialog, -5)).offset == -1
    assert (await look_up(dialog, -7)).error_code == ErrorCode.UNSUPPORTED_VERSION
    before_the_place = await look_up(dialog, -7, partition_index=9)
    assert before_the_place.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_what_can_t_be_looked_up_is_refused(dialog: Dialog) -> None:
    assert (await look_up(dialog, -1)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await dialog.create_topic()
    refused = await look_up(dialog, -1, current_leader_epoch=4)
    assert refused.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    request = api("ListOffsets").request
    twice = [request.ListOffsetsPartition(partition_index=0, timestamp=-1)] * 2
    topic = request.ListOffsetsTopic(name=TOPIC, partitions=twice)
    response = await dialog.ask("ListOffsets", topics=[topic])
    codes = [each.error_code for each in response.topics[0].partitions]
    assert codes == [ErrorCode.INVALID_REQUEST] * 2


async def test_a_leader_epoch_ends_where_the_log_does(dialog: Dialog) -> None:
    await dialog.create_topic()
    await produce(dialog, 1, 2)
    request = api("OffsetForLeaderEpoch").request
    for partition, epoch, expected in (
        (0, 0, (0, 0, 2)),
        (0, -1, (0, -1, -1)),
        (9, 0, (3, -1, -1)),
    ):
        part = request.OffsetForLeaderPartition(partition=partition, leader_epoch=epoch)
        topic = request.OffsetForLeaderTopic(topic=TOPIC, partitions=[part])
        response = await dialog.ask("OffsetForLeaderEpoch", topics=[topic])
        (found,) = response.topics[0].partitions
        assert (found.error_code, found.leader_epoch, found.end_offset) == expected
        # The first versions ask for no leadership of their own, version 0 is not told of one.
        for version in (0, 1):
            response = await dialog.ask("OffsetForLeaderEpoch", version, topics=[topic])
            (found,) = response.topics[0].partitions
            assert (found.error_code, found.end_offset) == (expected[0], expected[2])
            assert found.leader_epoch == (expected[1] if version else -1)
