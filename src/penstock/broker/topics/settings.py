"""Every setting of a topic: its type, unit, range and default, and whether it is in effect.

Names are Penstock's own, which are Kafka's with underscores wherever Kafka has the setting. Each
protocol has a table of its own names for them. docs/operations.md lists them all.

A setting that is not in effect can only be given a value that says what happens anyway. Anything
else is refused: a value that is kept and shown is a promise. One kind of clients can't work without
one that is not kept yet, so that is accepted with a warning in the broker's log: Kafka Streams 1.1
to 2.0 gives its repartition topics a segment.index.bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from penstock.broker.retention.policy import NO_LIMIT, QuotaPolicy
from penstock.broker.settings import BrokerSettings, Flush
from penstock.log import LogConfig
from penstock.log.header import Magic

Value: TypeAlias = int | float | bool | str

INT_MAX: Final = 2**31 - 1
FOREVER: Final = 2**63 - 1
"""As a time: never over. As a size: unlimited."""
COMPACT: Final = "compact"
KEEP: Final = "keep"
LOG_APPEND_TIME: Final = "LogAppendTime"
AS_SENT: Final = "producer"
"""Of a topic that keeps what is compressed as it was sent."""
CODECS: Final = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""As the attributes of a Kafka batch number them."""


class Kind(StrEnum):
    """What the values of a setting are."""

    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TEXT = "text"
    LIST = "list"
    """Texts with commas between them."""


class Effect(StrEnum):
    """What becomes of a value that is not one of those that hold anyway."""

    IN_EFFECT = "in effect"
    WARNED = "accepted with a warning"
    """Kept and shown, and not in effect: there are clients that can't work without it."""
    REFUSED = "refused"


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One setting. Values are kept as text, in the form that `write` gives them."""

    kind: Kind
    default: Value | Callable[[BrokerSettings], Value]
    """What holds where nothing is set: a value, or the node's own."""
    meaning: str
    unit: str = ""
    least: float = 0
    most: float = FOREVER
    choices: tuple[str, ...] = ()
    """What a text or the items of a list may be; empty where they may be anything."""
    default_of: Magic | None = None
    """Whose batches the default is for, the others having none; None where it is for all."""
    effect: Effect = Effect.IN_EFFECT
    holds: tuple[Value, ...] = ()
    """Values besides the default that say what happens anyway, of a setting not in effect."""
    instead: str = ""
    """What happens in place of what a setting that is not in effect asks for."""

    def default_on(self, node: BrokerSettings) -> Value:
        """Return what holds on this node where nothing is set."""
        return self.default(node) if callable(self.default) else self.default

    def read(self, text: str) -> Value:
        """Return the value that a text stands for. Raises ValueError with what is needed."""
        value = self._parse(text)
        if value is None:
            raise ValueError(f"is {text!r}; it has to be {self.range}")
        return value

    def write(self, value: Value) -> str:
        """Return the text that stands for a value."""
        return str(value).lower() if isinstance(value, bool) else str(value)

    def holds_anyway(self, value: Value) -> bool:
        """Whether the value says what happens: it is in effect, or the broker knows no other."""
        return self.effect is Effect.IN_EFFECT or value == self.default or value in self.holds

    def accepts(self, value: Value) -> bool:
        """Whether a topic may be given the value, with a warning or without."""
        return self.effect is Effect.WARNED or self.holds_anyway(value)

    @property
    def range(self) -> str:
        """What may be written, in words."""
        if self.choices:
            return " or ".join(self.choices) + (
                ", several of them, or none" if self.kind is Kind.LIST else ""
            )
        if self.kind is Kind.BOOLEAN:
            return "true or false"
        if self.kind in {Kind.TEXT, Kind.LIST}:
            return "any text"
        kind = "an integer" if self.kind is Kind.INTEGER else "a number"
        return f"{kind} from {self.least} to {self.most}"

    def _parse(self, text: str) -> Value | None:
        if self.kind is Kind.BOOLEAN:
            return {"true": True, "false": False}.get(text)
        if self.kind in {Kind.TEXT, Kind.LIST}:
            items = _items(text) if self.kind is Kind.LIST else [text]
            known = not self.choices or all(item in self.choices for item in items)
            return ",".join(items) if known else None
        try:
            amount = int(text) if self.kind is Kind.INTEGER else float(text)
        except ValueError:
            return None
        return amount if self.least <= amount <= self.most else None


def _items(text: str) -> list[str]:
    """Return what a list holds; one of nothing but spaces holds nothing."""
    return [item.strip() for item in text.split(",")] if text.strip() else []


def _switch(meaning: str, instead: str) -> Setting:
    """Something that can be switched on in Kafka or Iggy and is always off here."""
    return Setting(
        kind=Kind.BOOLEAN,
        default=False,
        meaning=meaning,
        effect=Effect.REFUSED,
        instead=instead,
    )


def _level(codec: str, default: int, least: int, most: int) -> Setting:
    return Setting(
        kind=Kind.INTEGER,
        default=default,
        least=least,
        most=most,
        meaning=f"How hard the broker compresses with {codec}.",
    )


def _limit(default: Callable[[BrokerSettings], Value], unit: str, meaning: str) -> Setting:
    return Setting(kind=Kind.INTEGER, default=default, unit=unit, least=NO_LIMIT, meaning=meaning)


def _throttled(who: str) -> Setting:
    return Setting(
        kind=Kind.LIST,
        default="",
        meaning=f"Replicas whose {who} copies slowly.",
        effect=Effect.REFUSED,
        instead="there is one replica",
    )


def _local(amount: str, unit: str) -> Setting:
    return Setting(
        kind=Kind.INTEGER,
        default=-2,
        unit=unit,
        least=-2,
        meaning=f"The {amount} up to which messages stay on the broker's own disk; -2 is the "
        "topic's retention.",
        effect=Effect.REFUSED,
        instead="there is no remote storage",
    )


_CHECKED: Final = {
    "max_message_bytes": Setting(
        kind=Kind.INTEGER,
        default=1_048_588,
        default_of=Magic.KAFKA,
        unit="bytes",
        most=INT_MAX,
        meaning="The largest batch as it is stored, its header of 61 bytes included: a batch of a "
        "Kafka producer, an entry of a Pulsar producer, what an Iggy client sends at once.",
    ),
    "validate_records": Setting(
        kind=Kind.BOOLEAN,
        default=True,
        meaning="Whether what is in a batch of a Kafka producer, or in an entry of a Pulsar "
        "producer, is looked at before it is stored, for which it is inflated.",
    ),
    "message_timestamp_after_max_ms": Setting(
        kind=Kind.INTEGER,
        default=3_600_000,
        default_of=Magic.KAFKA,
        unit="ms",
        meaning="How far the latest time in a batch may lie ahead of the broker's clock.",
    ),
    "message_timestamp_before_max_ms": Setting(
        kind=Kind.INTEGER,
        default=FOREVER,
        unit="ms",
        meaning="How far a message's time may lie behind the broker's clock.",
        effect=Effect.REFUSED,
        instead="any time in the past is taken",
    ),
    "message_timestamp_type": Setting(
        kind=Kind.TEXT,
        default="CreateTime",
        choices=("CreateTime", LOG_APPEND_TIME),
        meaning="Whose time a message has: its producer's or the broker's.",
    ),
}

_STORED: Final = {
    "terminated": Setting(
        kind=Kind.BOOLEAN,
        default=False,
        meaning="Whether the topic has ended: it takes no more messages, and consumers of Pulsar "
        "that have read and acknowledged all are told so. It can't be taken back.",
    ),
    "importing": Setting(
        kind=Kind.BOOLEAN,
        default=False,
        meaning="Whether batches may be put at offsets of their own behind the end, as `penstock "
        "import` does, which sets it while it runs.",
    ),
    "deduplication": Setting(
        kind=Kind.BOOLEAN,
        default=True,
        meaning="Whether a Pulsar message is left out whose sequence number its producer, known by "
        "its name, has passed: it was sent again.",
    ),
    "flush": Setting(
        kind=Kind.TEXT,
        default=lambda node: node.flush.value,
        choices=tuple(flush.value for flush in Flush),
        meaning="When a message is acknowledged: once it is on stable storage, or once it is "
        "written to the page cache.",
    ),
    "flush_messages": Setting(
        kind=Kind.INTEGER,
        default=FOREVER,
        least=1,
        meaning="Messages after which the log is flushed.",
        effect=Effect.REFUSED,
        instead="the setting 'flush' says when the log is flushed",
    ),
    "flush_ms": Setting(
        kind=Kind.INTEGER,
        default=FOREVER,
        unit="ms",
        meaning="Time after which the log is flushed.",
        effect=Effect.REFUSED,
        instead="the setting 'flush' says when the log is flushed",
    ),
    "consumer_offset_durability": Setting(
        kind=Kind.TEXT,
        default="replicated",
        choices=("replicated", "persisted"),
        meaning="When a committed offset is confirmed; both mean once it is on stable storage.",
    ),
    "save_after_messages": Setting(
        kind=Kind.INTEGER,
        default=1024,
        most=2**32 - 1,
        meaning="Messages that are gathered at most before they are written; each batch is "
        "written at once.",
    ),
    "save_after_bytes": Setting(
        kind=Kind.INTEGER,
        default=1 << 20,
        unit="bytes",
        most=2**64 - 1,
        meaning="Bytes that are gathered at most before they are written; each batch is written "
        "at once.",
    ),
    "segment_bytes": Setting(
        kind=Kind.INTEGER,
        default=lambda node: node.log.segment_bytes,
        unit="bytes",
        least=1 << 20,
        most=INT_MAX,
        meaning="The size at which a segment is closed and a new one begins.",
    ),
    "segment_ms": Setting(
        kind=Kind.INTEGER,
        default=lambda node: node.log.segment_ms,
        unit="ms",
        least=1,
        meaning="The age at which a segment is closed and a new one begins.",
    ),
    "segment_jitter_ms": Setting(
        kind=Kind.INTEGER,
        default=lambda node: node.log.segment_jitter_ms,
        unit="ms",
        meaning="Time by which segment_ms varies: each segment is closed by up to so much earlier.",
    ),
    "segment_index_bytes": Setting(
        kind=Kind.INTEGER,
        default=10_485_760,
        unit="bytes",
        least=4,
        most=INT_MAX,
        meaning="The size of an index at which its segment is closed.",
        effect=Effect.WARNED,
        instead="segments are closed by their own size only",
    ),
    "index_interval_bytes": Setting(
        kind=Kind.INTEGER,
        default=LogConfig().index_interval_bytes,
        unit="bytes",
        most=INT_MAX,
        meaning="Bytes of messages between two entries of an index.",
        effect=Effect.REFUSED,
        instead="all logs of a node have the same interval",
    ),
    "preallocate": _switch(
        "Whether a segment's space is taken at once.", "a segment grows as it is written"
    ),
    "file_delete_delay_ms": Setting(
        kind=Kind.INTEGER,
        default=lambda node: node.log.file_delete_delay_ms,
        unit="ms",
        meaning="Time between a deletion and the removal of the files.",
    ),
}

_COMPRESSED: Final = {
    "compression_type": Setting(
        kind=Kind.TEXT,
        default=AS_SENT,
        choices=(AS_SENT, *CODECS),
        meaning="The codec in which batches of Kafka producers are kept: as they were sent, or in "
        "this one, into which the broker puts them.",
    ),
    "compression_gzip_level": _level("gzip", -1, -1, 9),
    "compression_lz4_level": _level("lz4", 9, 1, 17),
    "compression_zstd_level": _level("zstd", 3, -131_072, 22),
    "compression_label": Setting(
        kind=Kind.TEXT,
        default="none",
        choices=("none", "gzip"),
        meaning="A label that consumers are shown; nothing is compressed for it.",
    ),
}

_CLEANED_UP: Final = {
    "cleanup_policy": Setting(
        kind=Kind.LIST,
        default="delete",
        choices=("delete", COMPACT),
        meaning="What is done with old messages: they are deleted, or the last one of each key is "
        "kept, or both; where it is empty, all stay.",
    ),
    "retention_ms": _limit(
        lambda node: node.retention_ms,
        "ms",
        "The age at which messages are deleted; -1 is never.",
    ),
    "retention_bytes": _limit(
        lambda node: node.retention_bytes,
        "bytes",
        "The size of a partition at which its oldest messages are deleted; -1 is none.",
    ),
    "retention_topic_bytes": Setting(
        kind=Kind.INTEGER,
        default=lambda node: node.retention_topic_bytes,
        unit="bytes",
        least=NO_LIMIT,
        most=2**64 - 1,
        meaning="The size of a whole topic at which its oldest messages are deleted; -1 is none.",
    ),
    "retention_unacknowledged": Setting(
        kind=Kind.TEXT,
        default="delete",
        choices=("delete", KEEP),
        meaning="Whether retention keeps what a durable subscription has not acknowledged; topics "
        "that Pulsar clients make are told to.",
    ),
    "message_ttl_ms": _limit(
        lambda node: node.message_ttl_ms,
        "ms",
        "The age at which a message counts as acknowledged, in every subscription; -1 is never.",
    ),
    "backlog_quota_bytes": _limit(
        lambda node: node.backlog_quota_bytes,
        "bytes",
        "How much of a partition a durable subscription may have left to acknowledge; -1 is all.",
    ),
    "backlog_quota_ms": _limit(
        lambda node: node.backlog_quota_ms,
        "ms",
        "How old the first message may be that a durable subscription has not acknowledged; -1 is "
        "any age.",
    ),
    "backlog_quota_policy": Setting(
        kind=Kind.TEXT,
        default=lambda node: node.backlog_quota_policy.value,
        choices=tuple(policy.value for policy in QuotaPolicy),
        meaning="What happens beyond a backlog quota: Pulsar producers wait or are refused, or the "
        "messages count as acknowledged.",
    ),
    "delete_retention_ms": Setting(
        kind=Kind.INTEGER,
        default=86_400_000,
        unit="ms",
        meaning="How long compaction keeps a tombstone.",
    ),
    "min_compaction_lag_ms": Setting(
        kind=Kind.INTEGER,
        default=0,
        unit="ms",
        meaning="The age before which a message is not compacted.",
    ),
    "max_compaction_lag_ms": Setting(
        kind=Kind.INTEGER,
        default=FOREVER,
        unit="ms",
        least=1,
        meaning="The age at which a message is compacted at the latest.",
    ),
    "min_cleanable_dirty_ratio": Setting(
        kind=Kind.NUMBER,
        default=0.5,
        most=1,
        meaning="The part of a log that is not compacted yet at which compaction begins.",
    ),
    "compaction_requested_ms": Setting(
        kind=Kind.INTEGER,
        default=0,
        unit="ms",
        meaning="When somebody asked last that all there was by then be compacted, as `penstock "
        "topic compact` does; whatever cleanup_policy says.",
    ),
}

_REPLICATED: Final = {
    "min_insync_replicas": Setting(
        kind=Kind.INTEGER,
        default=1,
        least=1,
        most=INT_MAX,
        meaning="Replicas that have to have a message before it is acknowledged.",
        effect=Effect.REFUSED,
        instead="there is one replica",
    ),
    "unclean_leader_election_enable": _switch(
        "Whether a replica that lags behind may take over.", "there is one replica"
    ),
    "leader_replication_throttled_replicas": _throttled("leader"),
    "follower_replication_throttled_replicas": _throttled("follower"),
    "remote_storage_enable": _switch(
        "Whether old segments move to remote storage.", "there is no remote storage"
    ),
    "remote_log_copy_disable": _switch(
        "Whether no more segments move to remote storage.", "there is no remote storage"
    ),
    "remote_log_delete_on_disable": _switch(
        "Whether what is on remote storage goes when that is switched off.",
        "there is no remote storage",
    ),
    "local_retention_ms": _local("age", "ms"),
    "local_retention_bytes": _local("size", "bytes"),
}

SETTINGS: Final[dict[str, Setting]] = _CHECKED | _STORED | _COMPRESSED | _CLEANED_UP | _REPLICATED
