"""Configuration entries as DescribeConfigs and CreateTopics show them, and those of topics."""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.settings import SETTINGS
from penstock.kafka.topic_configs import SETTING_OF_KEY, ConfigType, type_of

if TYPE_CHECKING:
    from penstock.broker.topics.config import TopicConfig
    from penstock.broker.topics.settings import Value

NODE_KEYS: Final = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.type": "compression.type",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
    "penstock.backlog.quota.bytes": "penstock.backlog.quota.bytes",
    "penstock.backlog.quota.ms": "penstock.backlog.quota.ms",
    "penstock.backlog.quota.policy": "penstock.backlog.quota.policy",
    "penstock.flush": "penstock.flush",
    "penstock.message.ttl.ms": "penstock.message.ttl.ms",
    "penstock.retention.topic.bytes": "penstock.retention.topic.bytes",
}
"""What Kafka calls a topic's key where it holds for all topics of a node."""

_BUILT_IN: Final = BrokerSettings()


class ConfigSource(IntEnum):
    TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5


class Synonym(NamedTuple):
    """A value that a key would have if those before it were not set, and who says so."""

    name: str
    value: str
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One key; the first of its synonyms is in effect, and there is one at least."""

    name: str
    type: ConfigType
    synonyms: list[Synonym]
    meaning: str | None = None

    @property
    def value(self) -> str:
        return self.synonyms[0].value

    @property
    def source(self) -> ConfigSource:
        return self.synonyms[0].source


def topic_entries(config: TopicConfig) -> list[ConfigEntry]:
    """Every key of a topic, with what was set for it or its default.

    None is left out: tools refuse to change a key that was not listed.
    """
    return [_topic_entry(config, key, name) for key, name in SETTING_OF_KEY.items()]


def default_entries(node: BrokerSettings) -> list[ConfigEntry]:
    """What holds for the topics of a node that don't say otherwise, under the node's keys."""
    return [
        _default_entry(key, name, SETTINGS[name].default_on(node))._replace(name=node_key)
        for key, node_key in NODE_KEYS.items()
        for name in [SETTING_OF_KEY[key]]
    ]


def synonyms(name: str, value: str, built_in: str) -> list[Synonym]:
    """What a node says of a key that has a default: the operator's word where there is one."""
    default = Synonym(name, built_in, ConfigSource.DEFAULT)
    if value == built_in:
        return [default]
    return [Synonym(name, value, ConfigSource.STATIC_BROKER), default]


def _topic_entry(config: TopicConfig, key: str, name: str) -> ConfigEntry:
    default = _default_entry(key, name, SETTINGS[name].default_on(config.node))
    value = config.explicit.get(name)
    if value is None:
        return default
    own = Synonym(key, value, ConfigSource.TOPIC)
    return default._replace(synonyms=[own, *default.synonyms])


@lru_cache(maxsize=256)
def _default_entry(key: str, name: str, value: Value) -> ConfigEntry:
    """What a topic has where the node's value holds. Made once, as each new topic lists them all;
    nobody changes it.
    """
    return ConfigEntry(key, type_of(key), _synonyms(key, name, value), SETTINGS[name].meaning)


def _synonyms(key: str, name: str, value: Value) -> list[Synonym]:
    """What a node says of a topic's key of which it has this value."""
    setting = SETTINGS[name]
    built_in = setting.write(setting.default_on(_BUILT_IN))
    return synonyms(NODE_KEYS.get(key, key), setting.write(value), built_in)
