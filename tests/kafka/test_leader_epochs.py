"""Goal: a client that has read under an earlier leadership is told so, and finds where it ended.

Method: a broker in the test's own process, opened several times over one data folder (KIP-320).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_dialog import TOPIC, Dialog, kafka_broker
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.wire import ErrorCode, api

RUNS = 3
BATCHES_OF_RUN = (2, 0, 3)


@pytest.fixture
async def written(tmp_path: Path) -> Path:
    """A topic to which the first run wrote two batches, the second none and the third three."""
    for run, batches in enumerate(BATCHES_OF_RUN):
        async with kafka_broker(tmp_path) as broker:
            dialog = Dialog(broker)
            if run == 0:
                await dialog.create_topic()
            for _ in range(batches):
                assert not (await dialog.produce(encode_batch([Record(b"v")]))).error_code
    return tmp_path


async def ends(dialog: Dialog, *epochs: int) -> list[tuple[int, int]]:
    request = api("OffsetForLeaderEpoch").request
    found = []
    for epoch in epochs:
        part = request.OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
        topic = request.OffsetForLeaderTopic(topic=TOPIC, partitions=[part])
        response = await dialog.ask("OffsetForLeaderEpoch", 4, replica_id=-1, topics=[topic])
        (result,) = response.topics[0].partitions
        found.append((result.leader_epoch, result.end_offset))
    return found


async def epoch_of(dialog: Dialog, timestamp: int) -> tuple[int, int]:
    request = api("ListOffsets").request
    part = request.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = request.ListOffsetsTopic(name=TOPIC, partitions=[part])
    response = await dialog.ask("ListOffsets", 5, replica_id=-1, topics=[topic])
    (result,) = response.topics[0].partitions
    return result.offset, result.leader_epoch


async def test_each_start_is_a_leadership_of_its_own(written: Path) -> None:
    async with kafka_broker(written) as broker:
        dialog = Dialog(broker)
        asked = api("Metadata").request.MetadataRequestTopic(name=TOPIC)
        response = await dialog.ask("Metadata", 9, topics=[asked])
        assert response.topics[0].partitions[0].leader_epoch == RUNS
        for epoch, code in (
            (RUNS, ErrorCode.NONE),
            (RUNS - 1, ErrorCode.FENCED_LEADER_EPOCH),
            (RUNS + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ):
            fields = dialog.fetch_fields((0, 0))
            fields["topics"][0].partitions[0].current_leader_epoch = epoch  # type: ignore[index]
            response = await dialog.ask("Fetch", 12, **fields)
            assert response.responses[0].partitions[0].error_code == code


async def test_each_leadership_ends_where_the_next_one_wrote(written: Path) -> None:
    async with kafka_broker(written) as broker:
        dialog = Dialog(broker)
        # The second run wrote nothing, so its messages end where the first one's do.
        assert await ends(dialog, 0, 1, 2, 3, 4) == [(0, 2), (0, 2), (2, 5), (3, 5), (-1, -1)]
        assert await epoch_of(dialog, -2) == (0, 0)
        assert await epoch_of(dialog, -1) == (5, RUNS)


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_an_epoch_that_is_yet_to_come_has_no_end(written: Path, version: int) -> None:
    request = api("OffsetForLeaderEpoch").request
    async with kafka_broker(written) as broker:
        dialog = Dialog(broker)
        for believed, code in (
            (-1, ErrorCode.NONE),
            (RUNS, ErrorCode.NONE),
            (RUNS + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ):
            for epoch in (-1, RUNS + 1, 2**31 - 1):
                part = request.OffsetForLeaderPartition(
                    partition=0, current_leader_epoch=believed, leader_epoch=epoch
                )
                topic = request.OffsetForLeaderTopic(topic=TOPIC, partitions=[part])
                response = await dialog.ask("OffsetForLeaderEpoch", version, topics=[topic])
                (result,) = response.topics[0].partitions
                answer = (result.error_code, result.leader_epoch, result.end_offset)
                assert answer == (code, -1, -1)


async def test_the_batches_carry_the_epoch_of_their_run(written: Path) -> None:
    async with kafka_broker(written) as broker:
        topic = broker.topics.by_kafka_name(TOPIC)
        assert topic is not None
        await topic.partition(0).opened()
        headers = [await topic.partition(0).batch_at(offset) for offset in range(5)]
        assert [header.leader_epoch for header in headers if header] == [0, 0, 2, 2, 2]
