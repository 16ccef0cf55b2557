"""What an export's folder says of itself: which offsets of which topics lie in which files.

Files have the names that readers take columns `topic` and `partition` from, and name their offsets:
`topic=orders/partition=0/<start>-<end>.parquet`. While an export is being made its folder has a
plan, which a later run goes on with; the manifest, which says the same, is there once it is whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from penstock.pipeline.source.offsets import TopicPartition
from penstock.pipeline.tables.storage import flush_folder

PLAN: Final = "_penstock-plan.json"
MANIFEST: Final = "_penstock-export.json"

COLUMNS: Final = ("key", "value", "offset", "timestamp", "timestampType", "headers")
"""What files of an export have; topic and partition are in their folders' names."""

_VERSION: Final = 1


class ExportError(Exception):
    """An export can't be made, or can't be taken back; the message says what to do."""


class ExportedFile(NamedTuple):
    """Records of one partition with offsets from `start` up to `end`."""

    source: TopicPartition
    start: int
    end: int

    @property
    def name(self) -> str:
        """Its path below the export's folder."""
        topic, partition = self.source
        offsets = f"{self.start:020d}-{self.end:020d}"
        return f"topic={quote(topic, safe='')}/partition={partition}/{offsets}.parquet"


@dataclass(frozen=True)
class ExportedTopic:
    """One topic as it was when the export was begun."""

    id: str
    config: Mapping[str, str | None]
    """What was set for it."""
    edges: tuple[tuple[int, ...], ...]
    """Of each partition where its files begin and end; one number where there is none."""

    @property
    def starts(self) -> list[int]:
        return [each[0] for each in self.edges]

    @property
    def ends(self) -> list[int]:
        return [each[-1] for each in self.edges]


@dataclass(frozen=True)
class Export:
    """All topics of one export, by their Kafka names."""

    topics: Mapping[str, ExportedTopic]

    def files(self, topic: str) -> Iterator[ExportedFile]:
        """Yield the files of a topic, each partition's in the order of their offsets."""
        for partition, edges in enumerate(self.topics[topic].edges):
            for start, end in pairwise(edges):
                yield ExportedFile(TopicPartition(topic, partition), start, end)

    def all_files(self) -> list[ExportedFile]:
        return [each for topic in self.topics for each in self.files(topic)]

    def write(self, file: Path) -> None:
        """Write it so that the file is there whole, on stable storage, or is not."""
        topics = {name: asdict(each) for name, each in self.topics.items()}
        written = file.with_name(f"{file.name}.new")
        with written.open("w", encoding="utf-8") as out:
            json.dump({"version": _VERSION, "topics": topics}, out, indent=1)
            out.flush()
            os.fsync(out.fileno())
        written.replace(file)
        flush_folder(file.parent)


def read_export(file: Path) -> Export:
    """Return what `Export.write` wrote. Raises ExportError, and FileNotFoundError."""
    try:
        found = json.loads(file.read_bytes())
        version = found["version"]
        if version != _VERSION:
            raise ExportError(
                f"{file} is of version {version} of exports, and this Penstock reads {_VERSION}: "
                "take the Penstock that made it, or a later one"
            )
        return Export({name: _topic(each) for name, each in found["topics"].items()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExportError(f"{file} is damaged, or nothing of penstock export: {error!r}") from error


def read_manifest(folder: Path) -> Export:
    """Return what a whole export holds. Raises ExportError where there is none."""
    try:
        return read_export(folder / MANIFEST)
    except OSError as error:
        if (folder / PLAN).exists():
            raise ExportError(
                f"{folder} holds an export that was interrupted: run penstock export again with "
                "the same topics, and it goes on"
            ) from error
        raise ExportError(f"{folder} holds no export: there is no {MANIFEST} in it") from error


def _topic(stored: dict[str, Any]) -> ExportedTopic:
    edges = tuple(tuple(int(edge) for edge in each) for each in stored["edges"])
    for each in edges:
        if not each or list(each) != sorted(set(each)):
            raise ExportError(f"the edges of a partition's files do not ascend: {list(each)}")
    return ExportedTopic(stored["id"], stored["config"], edges)
