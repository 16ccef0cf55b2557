"""The options of the data source `penstock`, named and meant as those of Spark's Kafka source."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from penstock.pipeline.source.offsets import (
    EARLIEST,
    LATEST,
    Offsets,
    TopicIds,
    TopicPartition,
    from_json,
    topic_ids,
)
from penstock.pipeline.values import options as value_options

SERVERS: Final = "penstock.bootstrap.servers"
KAFKA_SERVERS: Final = "kafka.bootstrap.servers"
"""Taken too, so that a job written for Spark's Kafka source changes only its format."""

ISOLATION: Final = "kafka.isolation.level"
"""As for Spark's Kafka source, but that what is committed is read unless all is asked for."""

NAMES: Final = (
    SERVERS,
    KAFKA_SERVERS,
    "subscribe",
    "assign",
    "startingOffsets",
    "endingOffsets",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    "includeHeaders",
    "readMode",
    ISOLATION,
    *value_options.NAMES,
)


class OptionError(ValueError):
    """An option is missing, unknown or has a value that it can't have."""


class ReadMode(StrEnum):
    """Where a task takes the stored bytes from."""

    AUTO = "auto"
    """Segment files where they are reachable, the broker for the rest."""
    LOG = "log"
    """Segment files; an error where they are not reachable."""
    WIRE = "wire"
    """The broker, whatever is reachable."""


@dataclass(frozen=True)
class SourceOptions:
    """What to read. Positions use Kafka's numbers: -2 is the earliest offset, -1 the latest."""

    servers: str
    topics: tuple[str, ...]
    assigned: tuple[TopicPartition, ...]
    """The partitions that `assign` names; empty where `subscribe` takes all of its topics."""
    starting: int | Offsets
    ending: int | Offsets
    ids: TopicIds
    """The ids that these offsets name beside their topics, as those of a checkpoint do."""
    max_offsets_per_trigger: int | None
    min_partitions: int | None
    fail_on_data_loss: bool
    include_headers: bool
    read_mode: ReadMode
    committed: bool
    """Whether messages of open and aborted transactions are left out."""
    values: value_options.ValueOptions | None = None
    """Which columns are typed; None where all are as they are stored."""


def parse(options: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    """Check and convert the options of one read; raises OptionError.

    A stream starts at the latest offsets unless set otherwise, a batch at the earliest, as Spark's
    Kafka source does.
    """
    given = {name.lower(): value for name, value in options.items()}
    _refuse_unknown(given)
    topics, assigned = _sources(given)
    if streaming and "endingoffsets" in given:
        raise OptionError("endingOffsets is for batch reads; end a stream with its trigger")
    return SourceOptions(
        servers=_servers(given),
        topics=topics,
        assigned=assigned,
        starting=_position(given, "startingOffsets", LATEST if streaming else EARLIEST),
        ending=_position(given, "endingOffsets", LATEST),
        ids=_ids(given),
        max_offsets_per_trigger=_count(given, "maxOffsetsPerTrigger"),
        min_partitions=_count(given, "minPartitions"),
        fail_on_data_loss=_flag(given, "failOnDataLoss", default=True),
        include_headers=_flag(given, "includeHeaders", default=False),
        read_mode=_read_mode(given),
        committed=_committed(given),
        values=_values(given),
    )


def includes_headers(options: Mapping[str, str]) -> bool:
    """Whether the column `headers` is asked for: the one option that changes the schema."""
    given = {name.lower(): value for name, value in options.items()}
    return _flag(given, "includeHeaders", default=False)


def begins_at_latest(options: SourceOptions) -> bool:
    """Whether the starting offsets are others each time that they are resolved."""
    starting = options.starting
    return LATEST in starting.values() if isinstance(starting, dict) else starting == LATEST


def _refuse_unknown(given: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in NAMES}
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {known[near[0]]}?" if near else "known are " + ", ".join(NAMES)
            raise OptionError(f"unknown option {name!r}: {hint}")


def _servers(given: Mapping[str, str]) -> str:
    servers = given.get(SERVERS) or given.get(KAFKA_SERVERS)
    if not servers:
        raise OptionError(f"option {SERVERS} is missing: the broker's Kafka address, host:port")
    for address in servers.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdigit():
            raise OptionError(f"{SERVERS}: {address.strip()!r} is not of the form host:port")
    return servers


def _sources(given: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[TopicPartition, ...]]:
    if ("subscribe" in given) == ("assign" in given):
        raise OptionError("give exactly one of the options subscribe and assign")
    if "subscribe" in given:
        topics = tuple(name for name in map(str.strip, given["subscribe"].split(",")) if name)
        if not topics:
            raise OptionError("subscribe names no topic")
        return tuple(dict.fromkeys(topics)), ()
    assigned = _assignment(given["assign"])
    return tuple(dict.fromkeys(each.topic for each in assigned)), assigned


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


def _position(given: Mapping[str, str], name: str, default: int) -> int | Offsets:
    text = given.get(name.lower())
    if text is None:
        return default
    word = text.strip().lower()
    ends_batch = name == "endingOffsets"
    if word == "latest":
        return LATEST
    if word == "earliest" and not ends_batch:
        return EARLIEST
    try:
        offsets = from_json(json.loads(text))
    except (ValueError, AttributeError) as error:
        words = "latest" if ends_batch else "earliest, latest"
        example = '{"orders": {"0": 17}}'
        raise OptionError(f"{name} must be {words} or JSON such as {example}: {error}") from None
    lowest = LATEST if ends_batch else EARLIEST
    if any(offset < lowest for offset in offsets.values()):
        raise OptionError(f"{name} holds an offset below {lowest}: {text}")
    return offsets


def _ids(given: Mapping[str, str]) -> TopicIds:
    texts = (given.get(name, "").strip() for name in ("startingoffsets", "endingoffsets"))
    named = [topic_ids(json.loads(text)) for text in texts if text.startswith("{")]
    return {topic: each for ids in named for topic, each in ids.items()}


def _count(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.strip().isdigit() or int(text) < 1:
        raise OptionError(f"{name} must be a whole number above 0, not {text!r}")
    return int(text)


def _flag(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    word = given.get(name.lower(), str(default)).strip().lower()
    if word not in {"true", "false"}:
        raise OptionError(f"{name} must be true or false, not {word!r}")
    return word == "true"


def _read_mode(given: Mapping[str, str]) -> ReadMode:
    word = given.get("readmode", ReadMode.AUTO).strip().lower()
    if word not in set(ReadMode):
        raise OptionError(f"readMode must be one of {', '.join(ReadMode)}, not {word!r}")
    return ReadMode(word)


def _values(given: Mapping[str, str]) -> value_options.ValueOptions | None:
    try:
        return value_options.parse_value_options(given)
    except value_options.ValueOptionError as error:
        raise OptionError(str(error)) from None


def _committed(given: Mapping[str, str]) -> bool:
    levels = {"read_committed": True, "read_uncommitted": False}
    word = given.get(ISOLATION, "read_committed").strip().lower()
    if word not in levels:
        raise OptionError(f"{ISOLATION} must be one of {', '.join(levels)}, not {word!r}")
    return levels[word]
