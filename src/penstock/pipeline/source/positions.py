"""Where a read begins and ends, as options say it: words, offsets or times.

Of several that are given, the one counts that Spark's Kafka source prefers: one time for all
partitions, then a time for each, then offsets.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from penstock.pipeline.source.offsets import (
    EARLIEST,
    LATEST,
    Offsets,
    TopicIds,
    TopicPartition,
    from_json,
    topic_ids,
)
from penstock.pipeline.source.option_values import Given, OptionError, choice, milliseconds

End: TypeAlias = Literal["starting", "ending"]

NAMES: Final = (
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
)


class Strategy(StrEnum):
    """What becomes of a partition that holds no message of the starting time or later."""

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True)
class Times:
    """Times in ms since 1970: the first message of that time or later is where to begin or end."""

    option: str
    """The one that said so."""
    times: int | dict[TopicPartition, int]
    """One for all partitions, or one for each."""
    strategy: Strategy

    def of(self, source: TopicPartition) -> int:
        return self.times if isinstance(self.times, int) else self.times[source]


Position: TypeAlias = int | Offsets | Times
"""EARLIEST or LATEST, offsets of which some may be these, or times."""


def starting(given: Given, *, streaming: bool) -> Position:
    """Return where to begin; raises OptionError.

    A stream starts at the latest offsets unless set otherwise, a batch at the earliest, as Spark's
    Kafka source does.
    """
    strategy = choice(given, "startingOffsetsByTimestampStrategy", Strategy.ERROR)
    position: Position | None = _by_time(given, "starting", strategy)
    if position is None:
        position = _offsets(given, "startingOffsets", LATEST if streaming else EARLIEST)
    if not streaming and not isinstance(position, Times) and begins_at_latest(position):
        raise OptionError(
            "startingOffsets latest is for streams: a batch that begins at the end reads nothing"
        )
    return position


def ending(given: Given, *, streaming: bool) -> Position:
    """Return where a batch ends; raises OptionError."""
    names = [name for name in NAMES if name.startswith("ending") and name.lower() in given]
    if streaming and names:
        raise OptionError(f"{names[0]} is for batch reads; end a stream with its trigger")
    position = _by_time(given, "ending", Strategy.LATEST)
    return _offsets(given, "endingOffsets", LATEST) if position is None else position


def named_ids(given: Given) -> TopicIds:
    """Return the ids that offsets name beside their topics, as those of a checkpoint do."""
    texts = (given.get(name, "").strip() for name in ("startingoffsets", "endingoffsets"))
    named = [topic_ids(json.loads(text)) for text in texts if text.startswith("{")]
    return {topic: each for ids in named for topic, each in ids.items()}


def begins_at_latest(position: Position) -> bool:
    """Whether this is another place each time that it is resolved."""
    if isinstance(position, Times):
        return position.strategy is Strategy.LATEST
    return LATEST in position.values() if isinstance(position, dict) else position == LATEST


def _by_time(given: Given, end: End, strategy: Strategy) -> Times | None:
    option = f"{end}Timestamp"
    time = milliseconds(given, option)
    if time is not None:
        return Times(option, time, strategy)
    option = f"{end}OffsetsByTimestamp"
    text = given.get(option.lower())
    if text is None:
        return None
    times = _by_partition(text, f"{option} must be JSON of milliseconds such as")
    if any(each < 0 for each in times.values()):
        raise OptionError(f"{option} holds a time below 0: {text}")
    return Times(option, times, strategy)


def _offsets(given: Given, name: str, default: int) -> int | Offsets:
    text = given.get(name.lower())
    if text is None:
        return default
    word = text.strip().lower()
    ends_batch = name == "endingOffsets"
    if word == "latest":
        return LATEST
    if word == "earliest" and not ends_batch:
        return EARLIEST
    words = "latest" if ends_batch else "earliest, latest"
    offsets = _by_partition(text, f"{name} must be {words} or JSON such as")
    lowest = LATEST if ends_batch else EARLIEST
    if any(offset < lowest for offset in offsets.values()):
        raise OptionError(f"{name} holds an offset below {lowest}: {text}")
    return offsets


def _by_partition(text: str, form: str) -> dict[TopicPartition, int]:
    try:
        return from_json(json.loads(text))
    except (ValueError, AttributeError) as error:
        example = '{"orders": {"0": 17}}'
        raise OptionError(f"{form} {example}: {error}") from None
