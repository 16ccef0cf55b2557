"""Configuration entries as DescribeConfigs and CreateTopics show them."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.topics.settings import SETTINGS
from penstock.kafka.topic_configs import SETTING_OF_KEY, ConfigType, type_of

if TYPE_CHECKING:
    from penstock.broker.settings import BrokerSettings
    from penstock.broker.topics.config import TopicConfig


class ConfigSource(IntEnum):
    TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5


class ConfigEntry(NamedTuple):
    name: str
    value: str
    type: ConfigType
    source: ConfigSource
    default: str


def topic_entries(config: TopicConfig) -> list[ConfigEntry]:
    """Every key of a topic, with what was set for it or its default.

    None is left out: tools refuse to change a key that was not listed.
    """
    return [_topic_entry(config, key, name) for key, name in SETTING_OF_KEY.items()]


def _topic_entry(config: TopicConfig, key: str, name: str) -> ConfigEntry:
    default = SETTINGS[name].write(config.default(name))
    value = config.explicit.get(name)
    source = ConfigSource.DEFAULT if value is None else ConfigSource.TOPIC
    return ConfigEntry(key, default if value is None else value, type_of(key), source, default)


def broker_entries(settings: BrokerSettings, node_id: int) -> list[ConfigEntry]:
    """What consoles ask a broker for, under Kafka's names."""
    static = [
        ("broker.id", str(node_id), ConfigType.INT),
        ("auto.create.topics.enable", str(settings.auto_create_topics).lower(), ConfigType.BOOLEAN),
        ("num.partitions", str(settings.default_partitions), ConfigType.INT),
        ("log.segment.bytes", str(settings.log.segment_bytes), ConfigType.INT),
        (
            "group.initial.rebalance.delay.ms",
            str(settings.groups.initial_rebalance_delay_ms),
            ConfigType.INT,
        ),
        (
            "group.min.session.timeout.ms",
            str(settings.groups.session_timeout_ms_min),
            ConfigType.INT,
        ),
        (
            "group.max.session.timeout.ms",
            str(settings.groups.session_timeout_ms_max),
            ConfigType.INT,
        ),
        ("delete.topic.enable", "true", ConfigType.BOOLEAN),
        ("default.replication.factor", "1", ConfigType.INT),
        ("offsets.topic.replication.factor", "1", ConfigType.INT),
        ("min.insync.replicas", "1", ConfigType.INT),
        ("message.max.bytes", str(SETTINGS["max_message_bytes"].default), ConfigType.INT),
    ]
    return [
        ConfigEntry(name, value, kind, ConfigSource.STATIC_BROKER, value)
        for name, value, kind in static
    ]
