"""The configuration keys of a topic, as Kafka names them, with their types and defaults.

All keys that Kafka 4.3 knows are accepted, kept and shown, because tools set and compare them.
Those that are IN_EFFECT change what the broker does, and the others do nothing yet.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.settings import Flush
from penstock.broker.topics.topic import FLUSH_KEY
from penstock.kafka.errors import RequestError
from penstock.kafka.wire import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.topics.topic import Topic


class ConfigType(IntEnum):
    """The numbers of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class ConfigKey(NamedTuple):
    """A key with its default as text, the way values travel and are kept."""

    type: ConfigType
    default: str
    values: frozenset[str] = frozenset()
    """What may be written; empty where anything of the type may."""
    least: int = -1


MAX_MESSAGE_BYTES: Final = "max.message.bytes"
TIMESTAMP_AFTER_MAX_MS: Final = "message.timestamp.after.max.ms"
IN_EFFECT: Final = (MAX_MESSAGE_BYTES, TIMESTAMP_AFTER_MAX_MS, FLUSH_KEY)

_LONG_MAX: Final = str(2**63 - 1)
_CODECS: Final = frozenset({"producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"})
_BOOLEAN: Final = ConfigKey(ConfigType.BOOLEAN, "false", frozenset({"true", "false"}))

CONFIG_KEYS: Final = {
    "cleanup.policy": ConfigKey(ConfigType.LIST, "delete", frozenset({"delete", "compact"})),
    "compression.type": ConfigKey(ConfigType.STRING, "producer", _CODECS),
    "compression.gzip.level": ConfigKey(ConfigType.INT, "-1"),
    "compression.lz4.level": ConfigKey(ConfigType.INT, "9", least=1),
    "compression.zstd.level": ConfigKey(ConfigType.INT, "3", least=-131072),
    "delete.retention.ms": ConfigKey(ConfigType.LONG, "86400000", least=0),
    "file.delete.delay.ms": ConfigKey(ConfigType.LONG, "60000", least=0),
    "flush.messages": ConfigKey(ConfigType.LONG, _LONG_MAX, least=1),
    "flush.ms": ConfigKey(ConfigType.LONG, _LONG_MAX, least=0),
    "follower.replication.throttled.replicas": ConfigKey(ConfigType.LIST, ""),
    "index.interval.bytes": ConfigKey(ConfigType.INT, "4096", least=0),
    "leader.replication.throttled.replicas": ConfigKey(ConfigType.LIST, ""),
    "local.retention.bytes": ConfigKey(ConfigType.LONG, "-2", least=-2),
    "local.retention.ms": ConfigKey(ConfigType.LONG, "-2", least=-2),
    "max.compaction.lag.ms": ConfigKey(ConfigType.LONG, _LONG_MAX, least=1),
    MAX_MESSAGE_BYTES: ConfigKey(ConfigType.INT, "1048588", least=0),
    TIMESTAMP_AFTER_MAX_MS: ConfigKey(ConfigType.LONG, "3600000", least=0),
    "message.timestamp.before.max.ms": ConfigKey(ConfigType.LONG, _LONG_MAX, least=0),
    "message.timestamp.type": ConfigKey(
        ConfigType.STRING, "CreateTime", frozenset({"CreateTime", "LogAppendTime"})
    ),
    "min.cleanable.dirty.ratio": ConfigKey(ConfigType.DOUBLE, "0.5", least=0),
    "min.compaction.lag.ms": ConfigKey(ConfigType.LONG, "0", least=0),
    "min.insync.replicas": ConfigKey(ConfigType.INT, "1", least=1),
    "preallocate": _BOOLEAN,
    "remote.log.copy.disable": _BOOLEAN,
    "remote.log.delete.on.disable": _BOOLEAN,
    "remote.storage.enable": _BOOLEAN,
    "retention.bytes": ConfigKey(ConfigType.LONG, "-1"),
    "retention.ms": ConfigKey(ConfigType.LONG, "604800000"),
    "segment.bytes": ConfigKey(ConfigType.INT, "1073741824", least=1 << 20),
    "segment.index.bytes": ConfigKey(ConfigType.INT, "10485760", least=4),
    "segment.jitter.ms": ConfigKey(ConfigType.LONG, "0", least=0),
    "segment.ms": ConfigKey(ConfigType.LONG, "604800000", least=1),
    "unclean.leader.election.enable": _BOOLEAN,
    FLUSH_KEY: ConfigKey(
        ConfigType.STRING, Flush.ACKNOWLEDGED.value, frozenset(flush.value for flush in Flush)
    ),
}


def number(topic: Topic, key: str) -> int:
    """The value of an integer key that is in effect for the topic."""
    return int(topic.config.get(key, CONFIG_KEYS[key].default))


def check_configs(configs: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Return what a new topic's configuration is. Raises RequestError INVALID_CONFIG."""
    checked = {}
    for name, value in configs:
        key = CONFIG_KEYS.get(name)
        if key is None:
            raise RequestError(ErrorCode.INVALID_CONFIG, f"{name} is no key of a topic")
        if value is None or not _fits(key, value):
            wanted = " or ".join(sorted(key.values)) or f"{key.type.name} from {key.least}"
            raise RequestError(ErrorCode.INVALID_CONFIG, f"{name} is {value!r}, not {wanted}")
        checked[name] = value
    return checked


def _fits(key: ConfigKey, value: str) -> bool:
    if key.values:
        items = value.split(",") if key.type is ConfigType.LIST else [value]
        return all(item.strip() in key.values for item in items)
    if key.type in {ConfigType.STRING, ConfigType.LIST}:
        return True
    try:
        amount = float(value) if key.type is ConfigType.DOUBLE else int(value)
    except ValueError:
        return False
    most = 2**31 - 1 if key.type is ConfigType.INT else 2**63 - 1
    return key.least <= amount <= most
