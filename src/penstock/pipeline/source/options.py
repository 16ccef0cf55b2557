"""The options of the data source `penstock`, named and meant as those of Spark's Kafka source."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from penstock.pipeline.clusters import address
from penstock.pipeline.clusters.address import Address, Protocol, parse_address
from penstock.pipeline.source import kafka_options, positions
from penstock.pipeline.source.kafka_options import KafkaOptions, parse_kafka
from penstock.pipeline.source.offsets import TopicIds, TopicPartition
from penstock.pipeline.source.option_values import (
    Given,
    OptionError,
    choice,
    count,
    duration,
    flag,
    milliseconds,
    refuse_unknown,
)
from penstock.pipeline.source.positions import Position, begins_at_latest
from penstock.pipeline.values import options as value_options

__all__ = ["OptionError", "ReadMode", "SourceOptions", "begins_at_latest", "parse"]

SERVERS: Final = "penstock.bootstrap.servers"

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
"""Those of Spark's Kafka source, in its order."""
HEADERS: Final = "headers"

FLATTEN: Final = "flatten"
"""The option by which the fields of a typed value are columns."""

NAMES: Final = (
    SERVERS,
    *address.NAMES,
    *kafka_options.UNDERSTOOD,
    "subscribe",
    "subscribePattern",
    "assign",
    *positions.NAMES,
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "columns",
    FLATTEN,
    "filterPushdown",
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
    "readMode",
    "onCorruption",
    "deadLetterPath",
    *value_options.NAMES,
)


class ReadMode(StrEnum):
    """Where a task takes the stored bytes from."""

    AUTO = "auto"
    """Segment files where they are reachable, the broker for the rest."""
    LOG = "log"
    """Segment files; an error where they are not reachable."""
    WIRE = "wire"
    """The broker, whatever is reachable."""


class OnCorruption(StrEnum):
    """What becomes of a batch that is damaged, or that nobody can read."""

    FAIL = "fail"
    SKIP = "skip"
    DEAD_LETTER = "deadLetter"


@dataclass(frozen=True)
class Retries:
    """How often, and after how many seconds, the driver asks for offsets again."""

    count: int
    interval_s: float


@dataclass(frozen=True)
class SourceOptions:
    """What to read. Positions use Kafka's numbers: -2 is the earliest offset, -1 the latest."""

    address: Address
    kafka: KafkaOptions
    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None
    """What names of topics match, all of each; None where `topics` names them."""
    assigned: tuple[TopicPartition, ...]
    """The partitions that `assign` names; empty where all of the topics' are read."""
    starting: Position
    ending: Position
    ids: TopicIds
    """The ids that these offsets name beside their topics, as those of a checkpoint do."""
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_s: float
    min_partitions: int | None
    max_records_per_partition: int | None
    fail_on_data_loss: bool
    columns: tuple[str, ...]
    filter_pushdown: bool
    group: str | None
    """The group as which progress is committed."""
    retries: Retries | None
    poll_timeout_s: float
    read_mode: ReadMode
    on_corruption: OnCorruption
    dead_letters: Path | None
    values: value_options.ValueOptions | None = None
    """Which columns are typed; None where all are as they are stored."""
    flatten: bool = False
    """Whether the fields of the value are columns, and all others are called `_name`."""

    @property
    def servers(self) -> str:
        """Addresses, `host:port` with commas."""
        return self.address.servers

    @property
    def committed(self) -> bool:
        """Whether messages of open and aborted transactions are left out."""
        return self.kafka.committed

    @property
    def include_headers(self) -> bool:
        return HEADERS in self.columns


def parse(options: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    """Check and convert the options of one read; raises OptionError."""
    given = {name.lower(): value for name, value in options.items()}
    ours = {name: value for name, value in given.items() if not kafka_options.is_known(name)}
    refuse_unknown(ours, NAMES)
    kafka = parse_kafka(given)
    topics, assigned = _sources(given)
    most, least = _rows_of_a_batch(given)
    on_corruption, dead_letters = _corruption(given)
    servers = parse_address(given, SERVERS, kafka_options.SERVERS)
    _check_protocol(given, servers, streaming=streaming)
    if streaming and flag(given, "filterPushdown", default=False):
        raise OptionError("filterPushdown is for batch reads: no stream hears of its conditions")
    return SourceOptions(
        address=servers,
        kafka=kafka,
        topics=topics,
        pattern=_pattern(given),
        assigned=assigned,
        starting=positions.starting(given, streaming=streaming),
        ending=positions.ending(given, streaming=streaming),
        ids=positions.named_ids(given),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_s=duration(given, "maxTriggerDelay", "15m"),
        min_partitions=count(given, "minPartitions"),
        max_records_per_partition=count(given, "maxRecordsPerPartition"),
        fail_on_data_loss=flag(given, "failOnDataLoss", default=True),
        columns=columns_of(options),
        filter_pushdown=flag(given, "filterPushdown", default=False),
        group=kafka.group or _generated_group(given),
        retries=_retries(given),
        poll_timeout_s=(count(given, "kafkaConsumer.pollTimeoutMs") or 120_000) / 1000,
        read_mode=choice(given, "readMode", ReadMode.AUTO),
        on_corruption=on_corruption,
        dead_letters=dead_letters,
        values=_values(given),
        flatten=_flattens(given),
    )


def columns_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns that are asked for, in their order. Raises OptionError."""
    given = {name.lower(): value for name, value in options.items()}
    with_headers = flag(given, "includeHeaders", default=False)
    everything = (*COLUMNS, HEADERS)
    if "columns" not in given:
        return everything if with_headers else COLUMNS
    known = {name.lower(): name for name in everything}
    names = [name.strip() for name in given["columns"].split(",")]
    unknown = [name for name in names if name.lower() not in known]
    if unknown or len({name.lower() for name in names}) < len(names):
        raise OptionError(
            f"columns must name some of {', '.join(everything)}, each once, "
            f"not {given['columns']!r}"
        )
    columns = tuple(known[name.lower()] for name in names)
    if with_headers and HEADERS not in columns:
        raise OptionError("includeHeaders is true, but columns does not name headers")
    return columns


def _flattens(given: Given) -> bool:
    if not flag(given, FLATTEN, default=False):
        return False
    if value_options.SCHEMA not in given:
        raise OptionError(f"{FLATTEN} makes columns of a value's fields: give schema with it")
    if flag(given, "filterPushdown", default=False):
        raise OptionError(
            f"filterPushdown is for columns under their own names: leave out {FLATTEN}"
        )
    return True


_KAFKAS_ALONE: Final = ("readMode", "groupIdPrefix", "onCorruption", "deadLetterPath")
_COUNTED: Final = (
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "minPartitions",
    "maxRecordsPerPartition",
)
_TIMED: Final = (*(name for name in positions.NAMES if "Timestamp" in name), "filterPushdown")


def _check_protocol(given: Given, servers: Address, *, streaming: bool) -> None:
    """Refuse what servers of this protocol can't give."""
    if servers.protocol is Protocol.KAFKA:
        return
    for name in _KAFKAS_ALONE:
        if name.lower() in given:
            raise OptionError(f"{name} is for Kafka's protocol, not for {servers.protocol}://")
    if servers.protocol is Protocol.PULSAR:
        _check_pulsars(given, streaming=streaming)


def _check_pulsars(given: Given, *, streaming: bool) -> None:
    for names, reason in (
        (_COUNTED, "offsets are message ids, which count nothing"),
        (_TIMED, "its protocol does not say which message is of a time"),
    ):
        for name in names:
            if name.lower() in given:
                raise OptionError(f"{name} can't be set with pulsar://: {reason}")
    if streaming and flag(given, "failOnDataLoss", default=True):
        raise OptionError(
            "set failOnDataLoss to false with pulsar://: nobody says whether messages were lost "
            "that a stream has not read yet"
        )


def _sources(given: Given) -> tuple[tuple[str, ...], tuple[TopicPartition, ...]]:
    ways = [name for name in ("subscribe", "subscribepattern", "assign") if name in given]
    if len(ways) != 1:
        raise OptionError("give exactly one of the options subscribe, subscribePattern and assign")
    if "subscribe" in given:
        topics = tuple(name for name in map(str.strip, given["subscribe"].split(",")) if name)
        if not topics:
            raise OptionError("subscribe names no topic")
        return tuple(dict.fromkeys(topics)), ()
    if "assign" not in given:
        return (), ()
    assigned = _assignment(given["assign"])
    return tuple(dict.fromkeys(each.topic for each in assigned)), assigned


def _pattern(given: Given) -> re.Pattern[str] | None:
    text = given.get("subscribepattern")
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise OptionError(
            f"subscribePattern must be a regular expression, not {text!r}: {error}"
        ) from None


def _assignment(text: str) -> tuple[TopicPartition, ...]:
    example = 'assign must be JSON such as {"orders": [0, 1]}'
    try:
        stored = json.loads(text)
        assigned = tuple(
            TopicPartition(topic, int(partition))
            for topic, partitions in stored.items()
            for partition in partitions
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise OptionError(f"{example}: {error}") from None
    if not assigned or any(each.partition < 0 for each in assigned):
        raise OptionError(f"{example}: got {text!r}")
    return tuple(dict.fromkeys(assigned))


def _rows_of_a_batch(given: Given) -> tuple[int | None, int | None]:
    most, least = count(given, "maxOffsetsPerTrigger"), count(given, "minOffsetsPerTrigger")
    if most is not None and least is not None and least > most:
        raise OptionError(
            f"minOffsetsPerTrigger {least} must not be above maxOffsetsPerTrigger {most}"
        )
    return most, least


def _generated_group(given: Given) -> str | None:
    """Return the same group for the same topics each time, so that lag tools know it again."""
    prefix = given.get("groupidprefix")
    if prefix is None:
        return None
    if not prefix.strip():
        raise OptionError("groupIdPrefix must not be empty: name a prefix, or leave it away")
    ways = ("subscribe", "subscribepattern", "assign")
    topics = "".join(given[way] for way in ways if way in given)
    return f"{prefix}-{hashlib.sha256(topics.encode()).hexdigest()[:8]}"


def _retries(given: Given) -> Retries | None:
    times, interval = "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"
    if times.lower() not in given and interval.lower() not in given:
        return None
    interval_ms = milliseconds(given, interval)
    return Retries(count(given, times) or 3, (1000 if interval_ms is None else interval_ms) / 1000)


def _corruption(given: Given) -> tuple[OnCorruption, Path | None]:
    on_corruption = choice(given, "onCorruption", OnCorruption.FAIL)
    path = given.get("deadletterpath", "").strip()
    if (on_corruption is OnCorruption.DEAD_LETTER) != bool(path):
        raise OptionError(
            "onCorruption deadLetter and deadLetterPath, a folder, belong together: give both"
        )
    return on_corruption, Path(path).absolute() if path else None


def _values(given: Given) -> value_options.ValueOptions | None:
    try:
        values = value_options.parse_value_options(given)
    except value_options.ValueOptionError as error:
        raise OptionError(str(error)) from None
    if values is None:
        return None
    columns = columns_of(given)
    for column, typed in (("value", values.value), ("key", values.key)):
        if typed is not None and column not in columns:
            raise OptionError(f"{typed.option} is for {column}, which columns leaves out")
    return values
