"""The node's configuration, that of its groups and of its clients' metrics, under Kafka's names.

Consoles decide by it what they offer and what they warn of, so each value says what this broker
does, also where Kafka's own default is another one.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from penstock import limits
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.settings import INT_MAX
from penstock.kafka.handlers.config_entries import (
    ConfigEntry,
    ConfigSource,
    Synonym,
    default_entries,
    synonyms,
)
from penstock.kafka.handlers.node_meanings import MEANINGS
from penstock.kafka.topic_configs import ConfigType

if TYPE_CHECKING:
    from penstock.kafka.client import Call

PROTOCOL_VERSION: Final = "4.3-IV0"
"""Of the Kafka whose requests are spoken. Kafka 4 has the key no more; consoles still read it."""

_BUILT_IN: Final = BrokerSettings()

_ALWAYS: Final = [
    ("authorizer.class.name", "", ConfigType.STRING),
    ("connections.max.idle.ms", str(limits.IDLE_SECONDS * 1000), ConfigType.LONG),
    ("default.replication.factor", "1", ConfigType.INT),
    ("delete.topic.enable", "true", ConfigType.BOOLEAN),
    ("fetch.max.bytes", str(limits.KAFKA_FETCH_BYTES), ConfigType.INT),
    ("group.coordinator.rebalance.protocols", "classic", ConfigType.LIST),
    ("inter.broker.protocol.version", PROTOCOL_VERSION, ConfigType.STRING),
    ("log.cleaner.enable", "true", ConfigType.BOOLEAN),
    # The last format that there was a number for: record batches.
    ("log.message.format.version", "3.0-IV1", ConfigType.STRING),
    ("max.connections", str(limits.CONNECTIONS), ConfigType.INT),
    ("offset.metadata.max.bytes", str(limits.KAFKA_OFFSET_METADATA_BYTES), ConfigType.INT),
    # Until their group is deleted: the longest that Kafka can say.
    ("offsets.retention.minutes", str(INT_MAX), ConfigType.INT),
    ("offsets.topic.replication.factor", "1", ConfigType.SHORT),
    ("process.roles", "broker,controller", ConfigType.LIST),
    ("remote.log.storage.system.enable", "false", ConfigType.BOOLEAN),
    ("sasl.enabled.mechanisms", "", ConfigType.LIST),
    ("socket.request.max.bytes", str(limits.KAFKA_REQUEST_BYTES), ConfigType.INT),
]
"""What nobody can set."""

_OF_GROUPS: Final = [
    ("consumer.heartbeat.interval.ms", "5000", ConfigType.INT),
    ("consumer.session.timeout.ms", "45000", ConfigType.INT),
]

_OF_CLIENT_METRICS: Final = [
    ("interval.ms", "300000", ConfigType.INT),
    ("match", "", ConfigType.LIST),
    ("metrics", "", ConfigType.LIST),
]
"""Kafka's defaults, by which clients send nothing."""


def node_entries(call: Call) -> list[ConfigEntry]:
    """Every key of the node, in the order of their names."""
    settings = call.broker.settings
    entries = _always() + _own(call) + _settable(settings) + default_entries(settings)
    return sorted(entries, key=attrgetter("name"))


def group_entries() -> list[ConfigEntry]:
    """The keys of any group (KIP-848).

    They are for members that leave their session to the broker. Those of classic groups, which are
    all that there are, say themselves how long theirs is.
    """
    return [
        _entry(name, kind, synonyms(f"group.{name}", value, value))
        for name, value, kind in _OF_GROUPS
    ]


def client_metrics_entries() -> list[ConfigEntry]:
    """The keys of any subscription to clients' metrics (KIP-714), of which there are none."""
    return [
        _entry(name, kind, synonyms(name, value, value)) for name, value, kind in _OF_CLIENT_METRICS
    ]


def _entry(name: str, kind: ConfigType, values: list[Synonym]) -> ConfigEntry:
    return ConfigEntry(name, kind, values, MEANINGS[name])


def _always() -> list[ConfigEntry]:
    return [_entry(name, kind, synonyms(name, value, value)) for name, value, kind in _ALWAYS]


def _own(call: Call) -> list[ConfigEntry]:
    """What is another on every node."""
    node_id = str(call.broker.cluster.this_node.node_id)
    host, port = call.client.transport.local_address
    own = [
        ("advertised.listeners", f"PLAINTEXT://{host}:{port}", ConfigType.LIST),
        ("broker.id", node_id, ConfigType.INT),
        ("listeners", f"PLAINTEXT://:{port}", ConfigType.LIST),
        ("log.dirs", str(call.broker.data_folder), ConfigType.LIST),
        ("node.id", node_id, ConfigType.INT),
    ]
    return [
        _entry(name, kind, [Synonym(name, value, ConfigSource.STATIC_BROKER)])
        for name, value, kind in own
    ]


def _settable(settings: BrokerSettings) -> list[ConfigEntry]:
    """What an operator may have set."""
    now, built_in = _values(settings), _values(_BUILT_IN)
    return [
        _entry(name, kind, synonyms(name, value, built_in[name][0]))
        for name, (value, kind) in now.items()
    ]


def _values(settings: BrokerSettings) -> dict[str, tuple[str, ConfigType]]:
    groups = settings.groups
    numbers = {
        "group.initial.rebalance.delay.ms": groups.initial_rebalance_delay_ms,
        "group.max.session.timeout.ms": groups.session_timeout_ms_max,
        "group.max.size": groups.members_max,
        "group.min.session.timeout.ms": groups.session_timeout_ms_min,
        "num.partitions": settings.default_partitions,
        "transaction.max.timeout.ms": settings.transactions.max_timeout_ms,
        "transactional.id.expiration.ms": settings.transactions.id_expiration_ms,
    }
    retention_ms = settings.retention_ms
    # What a console shows that knows no ms; they are the ones that hold.
    numbers["log.retention.hours"] = retention_ms if retention_ms < 0 else retention_ms // 3_600_000
    creates = str(settings.auto_create_topics).lower()
    return {
        "auto.create.topics.enable": (creates, ConfigType.BOOLEAN),
        "log.cleaner.backoff.ms": (str(settings.compaction_check_ms), ConfigType.LONG),
        "log.retention.check.interval.ms": (str(settings.retention_check_ms), ConfigType.LONG),
        **{name: (str(number), ConfigType.INT) for name, number in numbers.items()},
    }
