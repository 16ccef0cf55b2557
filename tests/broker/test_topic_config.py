"""Goal: no setting of a topic says what does not happen, and all writers keep to its limits."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partition_logs import log_of, open_logs
from penstock.broker.broker import Broker
from penstock.broker.compaction.policy import CompactionPolicy
from penstock.broker.errors import (
    InvalidSettingError,
    MessageTooLargeError,
    TimestampTooFarAheadError,
    TopicTerminatedError,
)
from penstock.broker.settings import BrokerSettings, Flush
from penstock.broker.topics.config import TopicConfig, checked, not_in_effect
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.settings import FOREVER, SETTINGS, Effect, Kind
from penstock.broker.topics.stored_config import canonical
from penstock.log import LogConfig
from penstock.log.header import HEADER_SIZE, Magic, build_header
from penstock.log.layout import DATABASE_FILE

ORDERS = TopicName("public", "default", "orders")
NODE = BrokerSettings()
HOUR_MS = 3_600_000


@asynccontextmanager
async def running(folder: Path, settings: BrokerSettings = NODE) -> AsyncIterator[Broker]:
    broker = await Broker.open(folder, settings)
    await open_logs(broker)
    try:
        yield broker
    finally:
        await broker.close()


def batch(magic: Magic, size: int = 100, ahead_ms: int = 0) -> list[bytearray]:
    body = bytes(size - HEADER_SIZE)
    now_ms = time.time_ns() // 1_000_000 + ahead_ms
    header = build_header(magic, body, record_count=1, base_timestamp=0, max_timestamp=now_ms)
    return [header + body]


def refused(**settings: str) -> str:
    with pytest.raises(InvalidSettingError) as error:
        checked(settings)
    return str(error.value)


def test_an_end_can_not_be_taken_back() -> None:
    ended = checked({"terminated": "true"})
    assert checked({}, ended) == ended
    assert checked({"segment_bytes": "2000000"}, ended) == {"segment_bytes": "2000000", **ended}
    with pytest.raises(InvalidSettingError, match="taken back"):
        checked({"terminated": "false"}, ended)


async def test_a_topic_that_was_terminated_stays_so(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        topic = await broker.topics.create(ORDERS, 2)
        topic.partitions[1].append(batch(Magic.KAFKA))
        await topic.partitions[1].flushed()
        await broker.topics.configure(topic, lambda _: {"terminated": "true"})
        await broker.topics.configure(topic, lambda _: {})
    async with running(tmp_path) as broker:
        again = broker.topics.get(ORDERS)
        assert again is not None
        for partition in again.partitions:
            for magic in Magic:
                with pytest.raises(TopicTerminatedError):
                    partition.append(batch(magic))
        assert again.partitions[1].end_offset == 1


def test_every_default_may_be_set_and_holds() -> None:
    for name, setting in SETTINGS.items():
        text = setting.write(setting.default_on(NODE))
        assert checked({name: text}) == {name: text}
        assert not not_in_effect({name: text})
        assert TopicConfig.of({name: text}, NODE).value(name) == setting.default_on(NODE)


TEXTS = st.one_of(
    st.text(max_size=12),
    st.integers().map(str),
    st.sampled_from(["", "true", "false", "compact", "written", "zstd", "gzip", "0.3"]),
)


@given(st.sampled_from(sorted(SETTINGS)), TEXTS)
def test_what_is_accepted_is_in_effect_or_warned_of(name: str, text: str) -> None:
    try:
        kept = checked({name: text})
    except InvalidSettingError:
        return
    setting = SETTINGS[name]
    if not setting.holds_anyway(setting.read(text)):
        assert setting.effect is Effect.WARNED
        assert f"{name}={kept[name]}" in not_in_effect(kept)
    assert checked(kept) == kept


def test_each_setting_says_what_happens_instead_unless_it_is_in_effect() -> None:
    for name, setting in SETTINGS.items():
        assert bool(setting.instead) is (setting.effect is not Effect.IN_EFFECT), name
        assert not (callable(setting.default) and setting.instead), name
        assert not setting.choices or setting.kind in {Kind.TEXT, Kind.LIST}, name


def test_refusals_say_what_would_be_right() -> None:
    assert refused(no_such="1") == "no_such is no setting of a topic"
    assert refused(segment_bytes="7") == (
        "segment_bytes is '7'; it has to be an integer from 1048576 to 2147483647"
    )
    assert refused(flush="never").endswith("it has to be acknowledged or written")
    assert refused(cleanup_policy="all").endswith("delete or compact, several of them, or none")
    assert refused(cleanup_policy="delete,").endswith("delete or compact, several of them, or none")
    assert refused(preallocate="yes").endswith("true or false")
    assert refused(min_cleanable_dirty_ratio="half").endswith("a number from 0 to 1")
    assert refused(retention_ms="-2").endswith(f"an integer from -1 to {FOREVER}")
    assert refused(min_insync_replicas="2") == (
        "min_insync_replicas is 2, which is not in effect in this version: there is one replica; "
        "leave it out, or at 1"
    )


def test_no_message_is_due_before_it_may_be_compacted() -> None:
    """As Kafka has it; what a topic had before stays."""
    told = "min_compaction_lag_ms is 9, and messages are to be compacted within 8 ms"
    lags = {"min_compaction_lag_ms": "9", "max_compaction_lag_ms": "8"}
    assert refused(**lags) == told
    assert checked({**lags, "retention_ms": "1"}, lags) == {**lags, "retention_ms": "1"}
    with pytest.raises(InvalidSettingError, match="is 10, and"):
        checked({**lags, "min_compaction_lag_ms": "10"}, lags)
    assert checked({**lags, "max_compaction_lag_ms": "9"})["max_compaction_lag_ms"] == "9"


def test_nothing_goes_where_no_policy_is_left() -> None:
    """As Kafka has it since 4.1 (KIP-1161), whatever limits there are."""
    asked = {"cleanup_policy": " ", "retention_ms": "1", "retention_bytes": "1"}
    assert checked(asked)["cleanup_policy"] == ""
    config = TopicConfig.of(asked, NODE)
    assert not config.retention.deletes
    assert config.compaction.is_idle


def test_compaction_goes_by_what_is_set() -> None:
    asked = {
        "cleanup_policy": "compact,delete",
        "min_compaction_lag_ms": "5",
        "max_compaction_lag_ms": "6",
        "delete_retention_ms": "60000",
        "min_cleanable_dirty_ratio": "0.25",
    }
    assert not_in_effect(checked(asked)) == ""
    policy = TopicConfig.of(asked, NODE).compaction
    assert policy == CompactionPolicy(True, 5, 6, 0.25, 60_000, 0)
    assert TopicConfig.of({}, NODE).compaction.is_idle
    assert not TopicConfig.of({"compaction_requested_ms": "1"}, NODE).compaction.is_idle


@pytest.mark.parametrize("magic", Magic)
async def test_what_is_set_holds_for_writers_of_every_protocol(
    tmp_path: Path, magic: Magic
) -> None:
    config = {"max_message_bytes": "1000", "message_timestamp_after_max_ms": str(HOUR_MS)}
    async with running(tmp_path) as broker:
        partition = (await broker.topics.create(ORDERS, 1, config=config)).partitions[0]
        assert partition.append(batch(magic, 1000, HOUR_MS - 1000)) == 0
        with pytest.raises(MessageTooLargeError):
            partition.append(batch(magic, 1001))
        with pytest.raises(TimestampTooFarAheadError):
            partition.append(batch(magic, 1000, HOUR_MS + 60_000))
        assert partition.end_offset == 1


async def test_defaults_are_those_of_the_writer(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        partition = (await broker.topics.create(ORDERS, 1)).partitions[0]
        for magic in (Magic.PULSAR, Magic.IGGY):
            partition.append(batch(magic, 6 << 20, ahead_ms=100 * HOUR_MS))
        partition.append(batch(Magic.KAFKA, 1_048_588, ahead_ms=HOUR_MS - 60_000))
        with pytest.raises(MessageTooLargeError):
            partition.append(batch(Magic.KAFKA, 1_048_589))
        with pytest.raises(TimestampTooFarAheadError):
            partition.append(batch(Magic.KAFKA, ahead_ms=HOUR_MS + 60_000))
        endless = {"message_timestamp_after_max_ms": str(FOREVER)}
        await broker.topics.configure(partition.topic, lambda _: endless)
        partition.append(batch(Magic.KAFKA, ahead_ms=100 * HOUR_MS))


async def test_refused_settings_leave_nothing_behind(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        with pytest.raises(InvalidSettingError):
            await broker.topics.create(ORDERS, 1, config={"preallocate": "true"})
        assert broker.topics.all() == broker.namespaces.all() == []
        topic = await broker.topics.create(ORDERS, 1)
        with pytest.raises(InvalidSettingError):
            await broker.topics.configure(topic, lambda _: {"preallocate": "true"}, name="bills")
        assert (topic.name, topic.config.explicit) == (ORDERS, {})


async def test_segments_are_of_the_size_that_the_topic_or_else_the_node_says(
    tmp_path: Path,
) -> None:
    node = BrokerSettings(log=LogConfig(segment_bytes=3 << 20))
    config = {"segment_bytes": str(1 << 20)}
    for _ in range(2):  # The second time the logs are there already.
        async with running(tmp_path, node) as broker:
            own = await broker.topics.get_or_create(ORDERS._replace(topic="nodes"))
            small = broker.topics.get(ORDERS) or await broker.topics.create(
                ORDERS, 1, config=config
            )
            before = [log_of(topic.partitions[0]).segment_count for topic in (own, small)]
            for topic in (own, small):
                for _ in range(4):
                    topic.partitions[0].append(batch(Magic.KAFKA, 900_000))
                await topic.partitions[0].flushed()
            after = [log_of(topic.partitions[0]).segment_count for topic in (own, small)]
            assert [now - then for now, then in zip(after, before, strict=True)] == [
                2 if before[0] == 0 else 1,
                4,
            ]


def test_rows_of_older_versions_are_read_under_the_names_of_today() -> None:
    assert canonical(
        {
            "retention.ms": "1000",
            "penstock.flush": "written",
            "preallocate": "true",
            "iggy.compression_algorithm": "gzip",
            "iggy.max_topic_size": str(2**64 - 1),
            "iggy.segment_size": "1048576",
            "iggy.durability": "replicated",
            "iggy.consumer_offset_durability": "persisted",
            "iggy.messages_required_to_save": "7",
            "iggy.size_of_messages_required_to_save": "8",
            "iggy.preallocate_segments": "True",
            "iggy.unheard.of": "1",
            "unheard.of": "2",
        }
    ) == {
        "retention_ms": "1000",
        "flush": "written",
        "preallocate": "true",
        "compression_label": "gzip",
        "retention_topic_bytes": "-1",
        "segment_bytes": "1048576",
        "consumer_offset_durability": "persisted",
        "save_after_messages": "7",
        "save_after_bytes": "8",
        "iggy.unheard.of": "1",
        "unheard.of": "2",
    }
    assert canonical({"iggy.durability": "persisted"}) == {"flush": Flush.ACKNOWLEDGED}
    assert canonical({"retention.ms": "1", "iggy.message_expiry": "1500"}) == {"retention_ms": "2"}
    assert canonical({"iggy.message_expiry": str(2**64 - 1)}) == {"retention_ms": "-1"}
    today = dict.fromkeys(SETTINGS, "1")
    assert canonical(today) == today


async def test_what_is_refused_today_and_was_stored_is_loaded_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as broker:
        await broker.topics.create(ORDERS, 1)
    stored = {
        "min.insync.replicas": "2",
        "max.message.bytes": "1000",
        "min.cleanable.dirty.ratio": "5",
    }
    with closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as database, database:
        database.execute("UPDATE topics SET config = ?", [json.dumps(stored | {"unheard.of": "1"})])
    loaded = {
        "min_insync_replicas": "2",
        "max_message_bytes": "1000",
        "min_cleanable_dirty_ratio": "5",
        "unheard.of": "1",
    }
    async with running(tmp_path) as broker:
        topic = broker.topics.get(ORDERS)
        assert topic is not None
        assert topic.config.explicit == loaded
        assert caplog.messages == [
            "topic orders: min_insync_replicas=2, min_cleanable_dirty_ratio=5, unheard.of=1: kept "
            "and shown, and not in effect in this version: the default of "
            "min_cleanable_dirty_ratio holds; there is one replica; unheard.of is not known"
        ]
        with pytest.raises(MessageTooLargeError):
            topic.partitions[0].append(batch(Magic.PULSAR, 1001))
        # What is there already is no reason to refuse a change of something else.
        bills = ORDERS._replace(topic="bills")
        await broker.topics.configure(
            topic, lambda _: {**loaded, "max_message_bytes": "2000"}, name=bills.topic
        )
    async with running(tmp_path) as broker:
        renamed = broker.topics.get(bills)
        assert renamed is not None
        assert renamed.config.explicit == {**loaded, "max_message_bytes": "2000"}
