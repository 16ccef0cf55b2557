"""The configuration of one topic: what was set for it, and what holds for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock import wall_clock
from penstock.broker.compaction.policy import CompactionPolicy
from penstock.broker.errors import (
    InvalidSettingError,
    MessageTooLargeError,
    TimestampTooFarAheadError,
    TopicTerminatedError,
)
from penstock.broker.retention.policy import (
    NO_LIMIT,
    BacklogQuota,
    QuotaPolicy,
    RetentionPolicy,
)
from penstock.broker.settings import Flush
from penstock.broker.topics.settings import (
    AS_SENT,
    CODECS,
    COMPACT,
    FOREVER,
    KEEP,
    LOG_APPEND_TIME,
    SETTINGS,
    Setting,
    Value,
)
from penstock.log.header import PREFIX_SIZE, Magic

if TYPE_CHECKING:
    from penstock.broker.settings import BrokerSettings
    from penstock.log import LogConfig
    from penstock.log.header import BatchHeader

Explicit: TypeAlias = Mapping[str, str]
"""Settings by their names in the catalogue, with their values as text."""

NOTHING_SET: Final[Explicit] = {}

TERMINATED: Final = "terminated"

_SHARED_MOST: Final = 256
_LEAST_LAG: Final = "min_compaction_lag_ms"
_MOST_LAG: Final = "max_compaction_lag_ms"


class Limits(NamedTuple):
    """What a batch has to keep to: its length as its header says it, and how far ahead its time is.

    FOREVER milliseconds are any time.
    """

    length: int
    ahead_ms: int


class Compression(NamedTuple):
    """The codec in which batches are kept, as their attributes number it, and how hard it tries."""

    codec: int
    level: int | None


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """Settings that are read for every batch are fields of their own, resolved once."""

    explicit: Explicit
    node: BrokerSettings = field(repr=False)
    flush: Flush
    log: LogConfig
    retention: RetentionPolicy
    limits: Mapping[int, Limits]
    """By the magic of the batch."""
    terminated: bool
    importing: bool
    """Whether batches may be put at offsets of their own."""
    validates_records: bool
    compaction: CompactionPolicy
    deduplication: bool
    compression: Compression | None
    """What the broker puts batches of Kafka producers into; None where they stay as sent."""
    stamps_append_time: bool
    """Whether messages have the broker's time, whatever time their producer gave them."""

    @classmethod
    def of(cls, explicit: Explicit, node: BrokerSettings) -> TopicConfig:
        """Resolve what was set for a topic and what its node says."""
        retention = _retention(explicit, node)
        return cls(
            explicit=dict(explicit),
            node=node,
            flush=Flush(explicit.get("flush", node.flush)),
            log=_log(explicit, node, retention),
            retention=retention,
            limits={magic.value: _limits(explicit, node, magic) for magic in Magic},
            validates_records=_read("validate_records", explicit, node) is True,
            compaction=_compaction(explicit, node),
            terminated=explicit.get(TERMINATED) == "true",
            importing=explicit.get("importing") == "true",
            deduplication=explicit.get("deduplication", "true") == "true",
            compression=_compression(explicit, node),
            stamps_append_time=_stamps_append_time(explicit, node),
        )

    def default(self, name: str) -> Value:
        """Return what would hold if the setting were not set."""
        return SETTINGS[name].default_on(self.node)

    def value(self, name: str) -> Value:
        """Return what was set, else the default."""
        return _read(name, self.explicit, self.node)

    def check_batch(self, header: BatchHeader) -> None:
        """Raise TopicTerminatedError, MessageTooLargeError or TimestampTooFarAheadError where the
        topic takes no such batch.
        """
        if self.terminated:
            raise TopicTerminatedError("the topic was terminated, and takes no more messages")
        limits = self.limits[header.magic]
        if header.length > limits.length:
            raise MessageTooLargeError(
                f"a batch of {header.size} bytes; max_message_bytes of the topic is "
                f"{limits.length + PREFIX_SIZE}"
            )
        latest = self.latest_time(header.magic)
        if header.max_timestamp > latest:
            raise TimestampTooFarAheadError(
                f"a timestamp {header.max_timestamp - latest + limits.ahead_ms} ms ahead; "
                f"message_timestamp_after_max_ms of the topic is {limits.ahead_ms}"
            )

    def latest_time(self, magic: int) -> int:
        """Return the latest time that a message may have now, in ms; FOREVER where any may be."""
        ahead_ms = self.limits[magic].ahead_ms
        return FOREVER if ahead_ms == FOREVER else wall_clock.now_ms() + ahead_ms


def _read(name: str, explicit: Explicit, node: BrokerSettings) -> Value:
    text = explicit.get(name)
    return SETTINGS[name].default_on(node) if text is None else SETTINGS[name].read(text)


class SharedConfigs:
    """One object for all topics of a node of which the same was set, which most are."""

    def __init__(self, node: BrokerSettings) -> None:
        self._node = node
        self._known: dict[tuple[tuple[str, str], ...], TopicConfig] = {}

    def of(self, explicit: Explicit) -> TopicConfig:
        """Return what TopicConfig.of does."""
        key = tuple(explicit.items())
        if key not in self._known:
            if len(self._known) == _SHARED_MOST:
                del self._known[next(iter(self._known))]
            self._known[key] = TopicConfig.of(explicit, self._node)
        return self._known[key]


def checked(explicit: Explicit, kept: Explicit = NOTHING_SET) -> dict[str, str]:
    """Return settings as they are kept. Raises InvalidSettingError where a topic can't have one.

    What the topic is `kept` with, for it has that already, is not asked about. A topic that was
    terminated stays so, for consumers have heard of it.
    """
    if kept.get(TERMINATED) == "true":
        if explicit.get(TERMINATED, "true") != "true":
            raise InvalidSettingError(TERMINATED, "is true, which can't be taken back")
        explicit = {**explicit, TERMINATED: "true"}
    made = {
        name: text if kept.get(name) == text else _checked(name, text)
        for name, text in explicit.items()
    }
    _check_lags(made, kept)
    return made


def _check_lags(explicit: Explicit, kept: Explicit) -> None:
    """Raise where messages would be due for compaction before they may be compacted."""
    if all(explicit.get(name) == kept.get(name) for name in (_LEAST_LAG, _MOST_LAG)):
        return
    least, most = int(explicit.get(_LEAST_LAG, 0)), int(explicit.get(_MOST_LAG, FOREVER))
    if least > most:
        raise InvalidSettingError(
            _LEAST_LAG, f"is {least}, and messages are to be compacted within {most} ms"
        )


def not_in_effect(explicit: Explicit) -> str:
    """Return what a topic was set to and does not get, in words; empty where it gets all."""
    missed = {name: text for name, text in explicit.items() if not _holds(name, text)}
    if not missed:
        return ""
    asked = ", ".join(f"{name}={text}" for name, text in missed.items())
    instead = "; ".join(sorted({_instead(name) for name in missed}))
    return f"{asked}: kept and shown, and not in effect in this version: {instead}"


def _limits(explicit: Explicit, node: BrokerSettings, magic: Magic) -> Limits:
    def limit(name: str) -> int:
        setting = SETTINGS[name]
        whose = setting.default_of
        default = setting.default_on(node) if whose in {None, magic} else setting.most
        return int(explicit.get(name, default))

    length = limit("max_message_bytes") - PREFIX_SIZE
    if _stamps_append_time(explicit, node):
        return Limits(length, FOREVER)
    return Limits(length, limit("message_timestamp_after_max_ms"))


def _log(explicit: Explicit, node: BrokerSettings, retention: RetentionPolicy) -> LogConfig:
    def number(name: str) -> int:
        return int(_read_leniently(name, explicit, node))

    # Segments go as a whole: where messages have an end, so has the segment that they are in.
    age_ms = FOREVER if retention.age_ms == NO_LIMIT else max(retention.age_ms, 1)
    return replace(
        node.log,
        segment_bytes=number("segment_bytes"),
        segment_ms=min(number("segment_ms"), age_ms),
        segment_jitter_ms=number("segment_jitter_ms"),
        file_delete_delay_ms=number("file_delete_delay_ms"),
    )


def _retention(explicit: Explicit, node: BrokerSettings) -> RetentionPolicy:
    def limit(name: str) -> int:
        amount = int(_read_leniently(name, explicit, node))
        return NO_LIMIT if amount >= FOREVER else amount

    def limit_of_deletion(name: str) -> int:
        return limit(name) if deletes else NO_LIMIT

    deletes = "delete" in str(_read_leniently("cleanup_policy", explicit, node)).split(",")
    return RetentionPolicy(
        age_ms=limit_of_deletion("retention_ms"),
        partition_bytes=limit_of_deletion("retention_bytes"),
        topic_bytes=limit_of_deletion("retention_topic_bytes"),
        keeps_unacknowledged=_read_leniently("retention_unacknowledged", explicit, node) == KEEP,
        ttl_ms=limit("message_ttl_ms"),
        backlog=BacklogQuota(
            limit("backlog_quota_bytes"),
            limit("backlog_quota_ms"),
            QuotaPolicy(str(_read_leniently("backlog_quota_policy", explicit, node))),
        ),
    )


def _compaction(explicit: Explicit, node: BrokerSettings) -> CompactionPolicy:
    def number(name: str) -> int:
        return int(_read_leniently(name, explicit, node))

    policies = str(_read_leniently("cleanup_policy", explicit, node)).split(",")
    return CompactionPolicy(
        is_on=COMPACT in policies,
        min_lag_ms=number("min_compaction_lag_ms"),
        max_lag_ms=number("max_compaction_lag_ms"),
        min_dirty_ratio=float(_read_leniently("min_cleanable_dirty_ratio", explicit, node)),
        delete_retention_ms=number("delete_retention_ms"),
        requested_ms=number("compaction_requested_ms"),
    )


def _read_leniently(name: str, explicit: Explicit, node: BrokerSettings) -> Value:
    """Return the default for a value that was stored when more could be set."""
    try:
        return _read(name, explicit, node)
    except ValueError:
        return SETTINGS[name].default_on(node)


def _stamps_append_time(explicit: Explicit, node: BrokerSettings) -> bool:
    return _read("message_timestamp_type", explicit, node) == LOG_APPEND_TIME


def _compression(explicit: Explicit, node: BrokerSettings) -> Compression | None:
    name = str(_read("compression_type", explicit, node))
    if name == AS_SENT:
        return None
    setting = f"compression_{name}_level"
    level = int(_read(setting, explicit, node)) if setting in SETTINGS else None
    return Compression(CODECS[name], level)


def _checked(name: str, text: str) -> str:
    setting = SETTINGS.get(name)
    if setting is None:
        raise InvalidSettingError(name, "is no setting of a topic")
    try:
        value = setting.read(text)
    except ValueError as error:
        raise InvalidSettingError(name, str(error)) from error
    if not setting.accepts(value):
        raise InvalidSettingError(name, f"is {text}, which {_refusal(setting)}")
    return setting.write(value)


def _refusal(setting: Setting) -> str:
    assert not callable(setting.default), "a setting that has a default of the node is in effect"
    held = " or ".join(setting.write(value) for value in (setting.default, *setting.holds))
    return (
        f"is not in effect in this version: {setting.instead}; leave it out, or at "
        f"{held or 'the empty text'}"
    )


def _instead(name: str) -> str:
    if name not in SETTINGS:
        return f"{name} is not known"
    return SETTINGS[name].instead or f"the default of {name} holds"


def _holds(name: str, text: str) -> bool:
    setting = SETTINGS.get(name)
    try:
        return setting is not None and setting.holds_anyway(setting.read(text))
    except ValueError:
        return False  # Stored when more could be set.
