"""A partition of which a flush has failed takes writes again once it is opened anew."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from kafka_dialog import TOPIC, Dialog, kafka_broker
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.wire import ErrorCode, api
from penstock.log.files import RealFile


@pytest.fixture
def failing_flushes(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Flushes of segments fail while the list holds something."""
    failing: list[bool] = []
    flush = RealFile.fdatasync

    def fdatasync(file: RealFile) -> None:
        if failing:
            raise OSError(errno.EIO, "Input/output error", "/a/path")
        flush(file)

    monkeypatch.setattr(RealFile, "fdatasync", fdatasync)
    return failing


async def elect(dialog: Dialog, *partitions: int, topic: str | None = None) -> dict[int, int]:
    types = api("ElectLeaders").request
    asked = [types.TopicPartitions(topic=topic or TOPIC, partitions=list(partitions))]
    fields = {"topic_partitions": asked if partitions else None}
    response = await dialog.ask("ElectLeaders", 2, **fields)
    return {
        found.partition_id: found.error_code
        for result in response.replica_election_results
        for found in result.partition_result
    }


def batch(value: bytes) -> bytearray:
    return encode_batch([Record(value, timestamp_ms=1)])


async def test_an_election_of_an_unknown_kind_is_refused(dialog: Dialog) -> None:
    response = await dialog.ask("ElectLeaders", 2, election_type=2)
    assert response.error_code == ErrorCode.INVALID_REQUEST


async def test_a_partition_whose_flush_failed_takes_writes_again_after_an_election(
    tmp_path: Path, failing_flushes: list[bool]
) -> None:
    async with kafka_broker(tmp_path) as broker:
        dialog = Dialog(broker)
        await dialog.create_topic()
        (topic,) = broker.topics.all()
        partition = topic.partition(0)
        await dialog.produce(batch(b"safe"))
        epoch = partition.leader_epoch
        failing_flushes.append(True)
        for _ in range(2):
            refused = await dialog.produce(batch(b"refused"))
            assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert "/" not in refused.error_message
        failing_flushes.clear()
        assert partition.has_failed
        assert partition.readable_end() == 1
        # It stays so by itself: a flush that is tried again may lie.
        assert (await dialog.produce(batch(b"no"))).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert await elect(dialog) == {0: ErrorCode.NONE}
        assert not partition.has_failed
        assert partition.leader_epoch > epoch
        assert partition.readable_end() >= 1
        assert partition.epoch_end(epoch).end_offset >= 1
        written = await dialog.produce(batch(b"after"))
        assert written.error_code == ErrorCode.NONE
        assert partition.readable_end() == written.base_offset + 1
        assert await elect(dialog, 0) == {0: ErrorCode.ELECTION_NOT_NEEDED}
        assert await elect(dialog) == {}


async def test_what_is_not_there_can_not_be_elected(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path) as broker:
        dialog = Dialog(broker)
        await dialog.create_topic()
        for topic, index in ((None, 99), ("nothing", 0)):
            found = await elect(dialog, index, topic=topic)
            assert found == {index: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def test_the_next_start_has_a_higher_epoch_than_an_election(
    tmp_path: Path, failing_flushes: list[bool]
) -> None:
    async with kafka_broker(tmp_path) as broker:
        dialog = Dialog(broker)
        await dialog.create_topic()
        failing_flushes.append(True)
        await dialog.produce(batch(b"refused"))
        failing_flushes.clear()
        await elect(dialog)
        (topic,) = broker.topics.all()
        epoch = topic.partition(0).leader_epoch
        await dialog.produce(batch(b"kept"))
    async with kafka_broker(tmp_path) as broker:
        (topic,) = broker.topics.all()
        partition = topic.partition(0)
        await partition.opened()
        assert partition.leader_epoch > epoch
        assert partition.readable_end() >= 1
