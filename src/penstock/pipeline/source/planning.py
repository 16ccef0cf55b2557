"""From options and what the broker says to the ranges that tasks read. Runs on Spark's driver."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from penstock.pipeline.source.offsets import (
    EARLIEST,
    LATEST,
    OffsetRange,
    Offsets,
    TopicIds,
    TopicPartition,
    limit_rows,
    split,
)
from penstock.pipeline.source.options import OptionError, ReadMode, SourceOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

logger = logging.getLogger(__name__)


class SourceError(Exception):
    """What was asked for can't be read; the message says what to do."""


class DataLossError(SourceError):
    """Offsets that were asked for are gone, and failOnDataLoss is on."""


@dataclass(frozen=True)
class DataFolder:
    """A broker's data folder, and the broker that it must belong to."""

    path: Path
    cluster_id: str


class Cluster(Protocol):
    """What the planner asks the broker."""

    def partitions(self, topics: Iterable[str]) -> dict[str, int]:
        """Count the partitions of each topic; a topic that does not exist is left out."""

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        """Return the id of each topic; a topic that does not exist is left out."""

    def ends(self, sources: Sequence[TopicPartition], end: int) -> Offsets:
        """Return the offset at one end, EARLIEST or LATEST; an unknown partition is left out."""

    def hold(self, starts: Offsets) -> None:
        """Have the broker keep what lies from these offsets on, as long as it is read."""

    def data_folder(self) -> DataFolder | None:
        """Return the broker's data folder where this process can read it."""

    def folders(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, Path]:
        """Return where the segments of each partition lie, relative to the data folder."""


@dataclass(frozen=True)
class Task:
    """What one Spark task reads, and how; pickled to the executors."""

    range: OffsetRange
    servers: str
    read_mode: ReadMode
    data_folder: DataFolder | None
    folder: Path | None
    """The partition's segments, relative to the data folder; None to read over the wire."""
    committed: bool = True
    """Whether messages of open and aborted transactions are left out."""


class Planner:
    """Resolves positions, watches for lost data and cuts the work."""

    def __init__(self, options: SourceOptions, cluster: Cluster) -> None:
        self._options = options
        self._cluster = cluster

    def sources(self) -> list[TopicPartition]:
        """Return the partitions to read; raises SourceError where one does not exist."""
        counts = self._cluster.partitions(self._options.topics)
        missing = [topic for topic in self._options.topics if topic not in counts]
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
        everything = [TopicPartition(t, p) for t, count in counts.items() for p in range(count)]
        return list(self._options.assigned) or everything

    def starting(self) -> Offsets:
        """Return where to begin, as numbers."""
        return self._resolve("startingOffsets", self._options.starting)

    def ending(self) -> Offsets:
        """Return where a batch ends, as numbers."""
        return self._resolve("endingOffsets", self._options.ending)

    def latest(self) -> Offsets:
        """Return the newest offsets, those of partitions that were added since included."""
        counts = self._cluster.partitions(self._options.topics)
        everything = [TopicPartition(t, p) for t, count in counts.items() for p in range(count)]
        return self._cluster.ends(list(self._options.assigned) or everything, LATEST)

    def topic_ids(self) -> TopicIds:
        """Return the ids of the topics, to be asked for before their offsets.

        A topic that is made anew between the two is then stored with the id of the one before, and
        noticed when its tasks are made.
        """
        return self._cluster.topic_ids(self._options.topics)

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
        for source, offset in behind.items():
            self._lost(f"{source} was read up to offset {offset} and is gone or begins anew")
        return {**latest, **behind}

    def limited(self, start: Offsets, latest: Offsets, max_rows: int) -> Offsets:
        """Return the end of the next batch of about `max_rows` rows."""
        new = [source for source in latest if source not in start]
        begin = {**start, **self._cluster.ends(new, EARLIEST)} if new else start
        return limit_rows(begin, latest, max_rows)

    def tasks(self, start: Offsets, end: Offsets) -> list[Task]:
        """Cut what lies between two positions; raises DataLossError where some of it is gone."""
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
        pieces = split(ranges, self._options.min_partitions or os.cpu_count() or 1)
        return self._located(pieces)

    def _resolve(self, option: str, position: int | Offsets) -> Offsets:
        sources = self.sources()
        if isinstance(position, int):
            return self._cluster.ends(sources, position)
        if set(position) != set(sources):
            raise OptionError(
                f"{option} must name each partition that is read, and no other: "
                f"missing {_names(set(sources) - set(position))}, "
                f"unknown {_names(set(position) - set(sources))}"
            )
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
            raise DataLossError(
                f"{what}. Begin again with another checkpoint or other startingOffsets, or set "
                "failOnDataLoss to false to read on without what is missing"
            )
        logger.warning("%s; failOnDataLoss is false, so the read goes on without it", what)

    def _located(self, ranges: list[OffsetRange]) -> list[Task]:
        options = self._options
        data_folder = None if options.read_mode is ReadMode.WIRE else self._cluster.data_folder()
        if data_folder is None and options.read_mode is ReadMode.LOG:
            raise SourceError(
                f"readMode is log, but the data folder of the broker at {options.servers} can't be "
                "read from here: run where it is mounted under the same path, or use readMode auto"
            )
        sources = list(dict.fromkeys(each.source for each in ranges))
        folders = self._cluster.folders(sources) if data_folder and sources else {}
        where = options.servers, options.read_mode, data_folder
        return [Task(each, *where, folders.get(each.source), options.committed) for each in ranges]


def without_changed(
    offsets: Offsets, before: Mapping[str, str], after: Mapping[str, str]
) -> Offsets:
    """Leave out the offsets of topics whose id is another one afterwards."""
    changed = {topic for topic, known in before.items() if after.get(topic, known) != known}
    return {source: offset for source, offset in offsets.items() if source.topic not in changed}


def _names(sources: Iterable[TopicPartition]) -> str:
    return ", ".join(str(source) for source in sorted(sources)) or "none"
