"""What an operator decides about the broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from penstock.broker.advertised import Advertised
from penstock.broker.groups.settings import GroupSettings
from penstock.broker.retention.policy import NO_LIMIT, QuotaPolicy
from penstock.broker.transactions.settings import TransactionSettings
from penstock.limits import MEMORY_BYTES_LEAST, PULSAR_MESSAGE_BYTES, TOPIC_PARTITIONS
from penstock.log import LogConfig


class Flush(StrEnum):
    """When an acknowledgement may be sent."""

    ACKNOWLEDGED = "acknowledged"
    """After fdatasync: what is acknowledged survives a power cut."""
    WRITTEN = "written"
    """After the write to the page cache: what is acknowledged survives the end of the process."""


class Anonymous(StrEnum):
    """Who may use a protocol without a login where its clients know none."""

    LOOPBACK = "loopback"
    """Clients of the same machine: those that connect to a loopback address."""
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True)
class BrokerSettings:
    """Defaults suit one node for development and for small production."""

    auto_create_topics: bool = True
    default_partitions: int = 1
    partitions_per_topic_max: int = TOPIC_PARTITIONS
    flush: Flush = Flush.ACKNOWLEDGED
    log: LogConfig = field(default_factory=LogConfig)
    groups: GroupSettings = field(default_factory=GroupSettings)
    retention_ms: int = NO_LIMIT
    retention_bytes: int = NO_LIMIT
    retention_topic_bytes: int = NO_LIMIT
    retention_check_ms: int = 60_000
    compaction_check_ms: int = 15_000
    """How often it is looked what of the logs is due."""
    compaction_bytes_per_second: int = 50 << 20
    """How fast compaction reads at most, for it shares disk and processor with producers."""
    message_ttl_ms: int = NO_LIMIT
    backlog_quota_bytes: int = NO_LIMIT
    backlog_quota_ms: int = NO_LIMIT
    backlog_quota_policy: QuotaPolicy = QuotaPolicy.HOLD
    transactions: TransactionSettings = field(default_factory=TransactionSettings)
    memory_bytes: int = MEMORY_BYTES_LEAST
    pulsar_message_bytes: int = PULSAR_MESSAGE_BYTES
    pulsar_advertised_listeners: Mapping[str, Advertised] = field(default_factory=dict)
    iggy_user: str = "iggy"
    iggy_password: str = "iggy"  # noqa: S105  # the default of every Iggy client, on loopback
    iggy_anonymous: Anonymous = Anonymous.LOOPBACK
