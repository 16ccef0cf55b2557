"""A topic's settings under Kafka's names: all that Kafka 4.3 knows, and Penstock's own."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.errors import InvalidSettingError
from penstock.broker.topics.config import checked
from penstock.broker.topics.settings import INT_MAX, SETTINGS, Kind
from penstock.kafka.errors import RequestError
from penstock.kafka.wire import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.topics.config import TopicConfig


class ConfigType(IntEnum):
    """The numbers of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


SETTING_OF_KEY: Final = {
    "cleanup.policy": "cleanup_policy",
    "compression.type": "compression_type",
    "compression.gzip.level": "compression_gzip_level",
    "compression.lz4.level": "compression_lz4_level",
    "compression.zstd.level": "compression_zstd_level",
    "delete.retention.ms": "delete_retention_ms",
    "file.delete.delay.ms": "file_delete_delay_ms",
    "flush.messages": "flush_messages",
    "flush.ms": "flush_ms",
    "follower.replication.throttled.replicas": "follower_replication_throttled_replicas",
    "index.interval.bytes": "index_interval_bytes",
    "leader.replication.throttled.replicas": "leader_replication_throttled_replicas",
    "local.retention.bytes": "local_retention_bytes",
    "local.retention.ms": "local_retention_ms",
    "max.compaction.lag.ms": "max_compaction_lag_ms",
    "max.message.bytes": "max_message_bytes",
    "message.timestamp.after.max.ms": "message_timestamp_after_max_ms",
    "message.timestamp.before.max.ms": "message_timestamp_before_max_ms",
    "message.timestamp.type": "message_timestamp_type",
    "min.cleanable.dirty.ratio": "min_cleanable_dirty_ratio",
    "min.compaction.lag.ms": "min_compaction_lag_ms",
    "min.insync.replicas": "min_insync_replicas",
    "preallocate": "preallocate",
    "remote.log.copy.disable": "remote_log_copy_disable",
    "remote.log.delete.on.disable": "remote_log_delete_on_disable",
    "remote.storage.enable": "remote_storage_enable",
    "retention.bytes": "retention_bytes",
    "retention.ms": "retention_ms",
    "segment.bytes": "segment_bytes",
    "segment.index.bytes": "segment_index_bytes",
    "segment.jitter.ms": "segment_jitter_ms",
    "segment.ms": "segment_ms",
    "unclean.leader.election.enable": "unclean_leader_election_enable",
    "penstock.backlog.quota.bytes": "backlog_quota_bytes",
    "penstock.compaction.requested.ms": "compaction_requested_ms",
    "penstock.backlog.quota.ms": "backlog_quota_ms",
    "penstock.backlog.quota.policy": "backlog_quota_policy",
    "penstock.flush": "flush",
    "penstock.deduplication": "deduplication",
    "penstock.compression.label": "compression_label",
    "penstock.consumer.offset.durability": "consumer_offset_durability",
    "penstock.importing": "importing",
    "penstock.message.ttl.ms": "message_ttl_ms",
    "penstock.retention.topic.bytes": "retention_topic_bytes",
    "penstock.retention.unacknowledged": "retention_unacknowledged",
    "penstock.save.after.bytes": "save_after_bytes",
    "penstock.save.after.messages": "save_after_messages",
    "penstock.terminated": "terminated",
    "penstock.validate.records": "validate_records",
}
_KEY_OF_SETTING: Final = {setting: key for key, setting in SETTING_OF_KEY.items()}
_TYPES: Final = {
    Kind.BOOLEAN: ConfigType.BOOLEAN,
    Kind.NUMBER: ConfigType.DOUBLE,
    Kind.TEXT: ConfigType.STRING,
    Kind.LIST: ConfigType.LIST,
}


def type_of(key: str) -> ConfigType:
    """Return what Kafka calls the values of a key."""
    setting = SETTINGS[SETTING_OF_KEY[key]]
    if setting.kind is Kind.INTEGER:
        return ConfigType.INT if setting.most <= INT_MAX else ConfigType.LONG
    return _TYPES[setting.kind]


class Operation(IntEnum):
    """The numbers of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """What is done to one key. DELETE has no value, the others have one."""

    key: str
    operation: Operation
    value: str


def check_configs(configs: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Return the settings of a new topic. Raises RequestError INVALID_CONFIG."""
    settings = dict(_setting(key, value) for key, value in configs)
    try:
        return checked(settings)
    except InvalidSettingError as error:
        raise invalid_config(error) from error


def invalid_config(error: InvalidSettingError) -> RequestError:
    """Return the refusal of a setting, under Kafka's name for it."""
    key = _KEY_OF_SETTING.get(error.setting, error.setting)
    return RequestError(ErrorCode.INVALID_CONFIG, f"{key} {error.problem}")


def changed(config: TopicConfig, changes: Iterable[ConfigChange]) -> dict[str, str]:
    """Return what is set for a topic after some changes (KIP-339), not checked as a whole.

    Raises RequestError INVALID_CONFIG.
    """
    explicit = dict(config.explicit)
    for change in changes:
        name = setting_of(change.key)
        if change.operation is Operation.DELETE:
            explicit.pop(name, None)
        elif change.operation is Operation.SET:
            explicit[name] = change.value
        else:
            explicit[name] = _changed_list(name, change, config)
    return explicit


def setting_of(key: str) -> str:
    """Return the setting that a key of Kafka's stands for. Raises RequestError INVALID_CONFIG."""
    name = SETTING_OF_KEY.get(key)
    if name is None:
        raise RequestError(ErrorCode.INVALID_CONFIG, f"{key} is no key of a topic")
    return name


def _changed_list(name: str, change: ConfigChange, config: TopicConfig) -> str:
    if SETTINGS[name].kind is not Kind.LIST:
        raise RequestError(ErrorCode.INVALID_CONFIG, f"{change.key} is no list")
    before = _items(str(config.value(name)))
    items = _items(change.value)
    if change.operation is Operation.APPEND:
        return ",".join(dict.fromkeys([*before, *items]))
    removed = set(items)
    return ",".join(item for item in before if item not in removed)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _setting(key: str, value: str | None) -> tuple[str, str]:
    name = setting_of(key)
    if value is None:
        raise RequestError(ErrorCode.INVALID_CONFIG, f"{key} is null")
    return name, value
