"""From options and what the broker says to the ranges that tasks read. Runs on Spark's driver."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from penstock.pipeline.source.dividing import divide, gather
from penstock.pipeline.source.errors import DataLossError, SourceError
from penstock.pipeline.source.offsets import (
    EARLIEST,
    LATEST,
    OffsetRange,
    Offsets,
    TopicIds,
    TopicPartition,
    limit_rows,
)
from penstock.pipeline.source.option_values import OptionError
from penstock.pipeline.source.options import ReadMode, SourceOptions
from penstock.pipeline.source.positions import Position, Strategy, Times

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping, Sequence

    from penstock.pipeline.source.dividing import Extents

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DataFolder:
    """A broker's data folder, and the broker that it must belong to."""

    path: Path
    cluster_id: str


class Cluster(Protocol):
    """What the planner asks the broker."""

    def topics_like(self, pattern: re.Pattern[str]) -> list[str]:
        """Return the topics whose whole name matches, but those that Kafka keeps for itself."""

    def partitions(self, topics: Iterable[str]) -> dict[str, int]:
        """Count the partitions of each topic; a topic that does not exist is left out."""

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        """Return the id of each topic; a topic that does not exist is left out."""

    def ends(self, sources: Sequence[TopicPartition], end: int) -> Offsets:
        """Return the offset at one end, EARLIEST or LATEST; an unknown partition is left out."""

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return the offset of the first message of a time in ms or later, None for none."""

    def hold(self, starts: Offsets) -> None:
        """Have the broker keep what lies from these offsets on, as long as it is read."""

    def extents(self, sources: Sequence[TopicPartition]) -> Extents:
        """Return how many bytes are stored of which offsets, as far as the broker says."""

    def data_folder(self) -> DataFolder | None:
        """Return the broker's data folder where this process can read it."""

    def folders(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, Path]:
        """Return where the segments of each partition lie, relative to the data folder."""


@dataclass(frozen=True)
class Task:
    """A range that a Spark task reads, alone or as one of several; pickled to the executors."""

    range: OffsetRange
    data_folder: DataFolder | None
    folder: Path | None
    """The partition's segments, relative to the data folder; None to read over the wire."""
    topic_id: str | None = None


class Planner:
    """Resolves positions, watches for lost data and cuts the work."""

    def __init__(self, options: SourceOptions, cluster: Cluster) -> None:
        self._options = options
        self._cluster = cluster

    def topics(self) -> Sequence[str]:
        """Return the topics that the options name, or those that match their pattern now."""
        pattern = self._options.pattern
        return self._options.topics if pattern is None else self._cluster.topics_like(pattern)

    def sources(self) -> list[TopicPartition]:
        """Return the partitions to read; raises SourceError where one does not exist."""
        topics = self.topics()
        counts = self._cluster.partitions(topics)
        missing = [topic for topic in topics if topic not in counts]
        if missing:
            raise SourceError(
                f"no topic named {', '.join(missing)} at {self._options.servers}: create it, write "
                "to it, or correct the option subscribe or assign"
            )
        for topic, partition in self._options.assigned:
            if partition >= counts[topic]:
                raise SourceError(
                    f"topic {topic} has {counts[topic]} partitions, counted from 0, "
                    f"so assign can't name partition {partition}"
                )
        return self._partitions(counts)

    def starting(self) -> Offsets:
        """Return where to begin, as numbers. Raises OptionError where that is beyond the end."""
        starts = self._resolve("startingOffsets", self._options.starting)
        ends = self._cluster.ends(list(starts), LATEST)
        beyond = {each: offset for each, offset in starts.items() if offset > ends.get(each, 0)}
        if beyond:
            text = ", ".join(
                f"{each} begins at {offset} and ends at {ends.get(each, 0)}"
                for each, offset in sorted(beyond.items())
            )
            what = f"startingOffsets lies beyond the end: {text}"
            if self._options.fail_on_data_loss:
                raise OptionError(
                    f"{what}. Name an offset up to the end, or set failOnDataLoss to false"
                )
            logger.warning("%s; failOnDataLoss is false, so nothing is read of it", what)
        return starts

    def ending(self) -> Offsets:
        """Return where a batch ends, as numbers."""
        return self._resolve("endingOffsets", self._options.ending)

    def batch(self) -> tuple[Offsets, Offsets]:
        """Return where a batch begins and ends. Raises OptionError and SourceError."""
        if self._options.pattern is not None and not self.topics():
            raise SourceError(
                f"subscribePattern {self._options.pattern.pattern!r} matches the whole name of no "
                f"topic at {self._options.servers}"
            )
        start, end = self.starting(), self.ending()
        for source in sorted(start):
            if self._options.fail_on_data_loss and start[source] > end[source]:
                raise OptionError(
                    f"{source} would be read from offset {start[source]} back to {end[source]}: "
                    "what begins a read must lie before what ends it"
                )
        return start, end

    def latest(self) -> Offsets:
        """Return the newest offsets, those of partitions that were added since included."""
        counts = self._cluster.partitions(self.topics())
        return self._cluster.ends(self._partitions(counts), LATEST)

    def topic_ids(self) -> TopicIds:
        """Return the ids of the topics, to be asked for before their offsets.

        A topic that is made anew between the two is then stored with the id of the one before, and
        noticed when its tasks are made.
        """
        return self._cluster.topic_ids(self.topics())

    def of_same_topics(
        self, known: Offsets, recorded: Mapping[str, str], current: Mapping[str, str]
    ) -> Offsets:
        """Return those of the offsets that are of the current topics.

        A topic that was made anew is lost data; where failOnDataLoss is off, it begins anew too.
        One whose id was not recorded is taken for the same.
        """
        same = without_changed(known, recorded, current)
        for source, offset in known.items():
            if source not in same:
                self._lost(
                    f"{source} was read up to offset {offset} and is gone: topic {source.topic} "
                    "was deleted and made anew"
                )
        return same

    def following(self, known: Offsets, latest: Offsets) -> Offsets:
        """Return `latest` where no partition of `known` is gone or begins anew: that is lost data.

        Where failOnDataLoss is off, such a partition stays where it was read up to.
        """
        behind = {key: offset for key, offset in known.items() if latest.get(key, -1) < offset}
        topics = {source.topic for source in latest}
        for source, offset in behind.items():
            if source.topic in topics:
                what = "is gone or begins anew"
            elif self._is_named(source.topic):
                what = f"is gone: there is no topic {source.topic} any more"
            else:
                what = "is not to be read now"
            self._lost(f"{source} was read up to offset {offset} and {what}")
        return {**latest, **behind}

    def _is_named(self, topic: str) -> bool:
        """Whether the options name a topic, there or not."""
        pattern = self._options.pattern
        if pattern is not None:
            return pattern.fullmatch(topic) is not None
        return topic in self._options.topics

    def limited(self, start: Offsets, latest: Offsets, max_rows: int) -> Offsets:
        """Return the end of the next batch of about `max_rows` rows."""
        begin = {source: begin for source, (begin, _) in self._spans(start, latest).items()}
        return limit_rows(begin, latest, max_rows)

    def rows(self, start: Offsets, latest: Offsets) -> int:
        """Count the offsets that wait, those of partitions that were added since included."""
        return sum(end - begin for begin, end in self._spans(start, latest).values())

    def tasks(self, start: Offsets, end: Offsets) -> list[Task]:
        """Return what `shares` does, each range by itself."""
        return [task for share in self.shares(start, end) for task in share]

    def shares(self, start: Offsets, end: Offsets) -> list[list[Task]]:
        """Cut what lies between two positions into what each Spark task reads, range by range.

        Raises DataLossError where some of it is gone.
        """
        sources = list(end)
        self._cluster.hold({source: start.get(source, 0) for source in sources})
        earliest = self._cluster.ends(sources, EARLIEST)
        latest = self._cluster.ends(sources, LATEST)
        ranges = []
        for source in sources:
            if source not in latest:
                self._lost(f"{source} does not exist any more")
                continue
            begin = start.get(source, earliest[source])
            wanted = OffsetRange(source, begin, end[source])
            ranges.append(self._inside(wanted, earliest[source], latest[source]))
        return self._located(self._divided(ranges))

    def _spans(self, start: Offsets, latest: Offsets) -> dict[TopicPartition, tuple[int, int]]:
        new = [source for source in latest if source not in start]
        begin = {**start, **self._cluster.ends(new, EARLIEST)} if new else start
        return {source: (begin[source], end) for source, end in latest.items()}

    def _divided(self, ranges: Sequence[OffsetRange]) -> list[list[OffsetRange]]:
        sources = list(dict.fromkeys(each.source for each in ranges if each.rows > 0))
        extents = self._cluster.extents(sources) if sources else {}
        cores, min_tasks = os.cpu_count() or 1, self._options.min_partitions
        max_rows = self._options.max_records_per_partition
        pieces = divide(ranges, extents, cores=cores, min_tasks=min_tasks, max_rows=max_rows)
        if min_tasks is not None:
            return [[piece] for piece in pieces]
        return gather(pieces, extents, cores=cores, max_rows=max_rows)

    def _partitions(self, counts: Mapping[str, int]) -> list[TopicPartition]:
        everything = [TopicPartition(t, p) for t, count in counts.items() for p in range(count)]
        return list(self._options.assigned) or everything

    def _resolve(self, option: str, position: Position) -> Offsets:
        sources = self.sources()
        if isinstance(position, int):
            return self._cluster.ends(sources, position)
        if isinstance(position, Times):
            return self._at(position, sources)
        _check_all(option, position, sources)
        other = set(position) - set(without_changed(position, self._options.ids, self.topic_ids()))
        if other:
            raise OptionError(
                f"{option} is of another topic than the one that has this name now, by its id: "
                f"{_names(other)}"
            )
        resolved = dict(position)
        for end in (EARLIEST, LATEST):
            asked = [source for source, offset in position.items() if offset == end]
            resolved.update(self._cluster.ends(asked, end))
        return resolved

    def _at(self, position: Times, sources: Sequence[TopicPartition]) -> Offsets:
        if not isinstance(position.times, int):
            _check_all(position.option, position.times, sources)
        found = self._cluster.at_times({source: position.of(source) for source in sources})
        later = [source for source in sources if found.get(source) is None]
        if later and position.strategy is Strategy.ERROR:
            raise OptionError(
                f"{position.option}: {_names(later)} holds no message of that time or later. Set "
                "startingOffsetsByTimestampStrategy to latest to begin at the end there"
            )
        ends = self._cluster.ends(later, LATEST)
        return {each: offset for each, offset in found.items() if offset is not None} | ends

    def _inside(self, wanted: OffsetRange, earliest: int, latest: int) -> OffsetRange:
        """Return the part of a range that the log holds."""
        held = OffsetRange(
            wanted.source,
            min(max(wanted.start, earliest), latest),
            max(min(wanted.end, latest), earliest),
        )
        if wanted.rows > 0 and held != wanted:
            self._lost(
                f"{wanted.source} was to be read from offset {wanted.start} up to {wanted.end}, "
                f"but holds {earliest} up to {latest}"
            )
        return held

    def _lost(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLossError(what)
        logger.warning("%s; failOnDataLoss is false, so the read goes on without it", what)

    def _located(self, shares: list[list[OffsetRange]]) -> list[list[Task]]:
        options = self._options
        data_folder = None if options.read_mode is ReadMode.WIRE else self._cluster.data_folder()
        if data_folder is None and options.read_mode is ReadMode.LOG:
            raise SourceError(
                f"readMode is log, but the data folder of the broker at {options.servers} can't be "
                "read from here: run where it is mounted under the same path, or use readMode auto"
            )
        sources = list(dict.fromkeys(each.source for share in shares for each in share))
        folders = self._cluster.folders(sources) if data_folder and sources else {}
        ids = self._cluster.topic_ids({source.topic for source in sources})
        return [
            [
                Task(each, data_folder, folders.get(each.source), ids.get(each.source.topic))
                for each in share
            ]
            for share in shares
        ]


def without_changed(
    offsets: Offsets, before: Mapping[str, str], after: Mapping[str, str]
) -> Offsets:
    """Leave out the offsets of topics whose id is another one afterwards."""
    changed = {topic for topic, known in before.items() if after.get(topic, known) != known}
    return {source: offset for source, offset in offsets.items() if source.topic not in changed}


def _check_all(
    option: str, named: Iterable[TopicPartition], sources: Iterable[TopicPartition]
) -> None:
    missing, unknown = set(sources) - set(named), set(named) - set(sources)
    if missing or unknown:
        raise OptionError(
            f"{option} must name each partition that is read, and no other: "
            f"missing {_names(missing)}, unknown {_names(unknown)}"
        )


def _names(sources: Iterable[TopicPartition]) -> str:
    return ", ".join(str(source) for source in sorted(sources)) or "none"
