"""Topics made of an export: the same records at the same offsets, one task a partition.

Each batch is appended at the offset that it had, to a partition that ends where the task believes,
so a run that was ended, and an attempt that is made again, go on behind what is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.clients.kafka.client import KafkaClient, KafkaError
from penstock.pipeline.logs.file_checks import check_file
from penstock.pipeline.logs.manifest import (
    COLUMNS,
    Export,
    ExportedFile,
    ExportError,
    read_manifest,
)
from penstock.pipeline.logs.numbered import OpenSpark, do_all
from penstock.pipeline.logs.progress import Report, reported
from penstock.pipeline.logs.restoring import restore
from penstock.pipeline.logs.targets import Targets
from penstock.pipeline.sink.options import CODECS
from penstock.pipeline.source.errors import SourceError
from penstock.pipeline.source.offsets import TopicPartition
from penstock.pipeline.source.patience import Patience

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

_FAULTS_SHOWN: Final = 5


@dataclass(frozen=True)
class Imported:
    """What a run has written."""

    records: int
    partitions: int


class _Part(NamedTuple):
    """One partition, and the files of it."""

    target: TopicPartition
    end: int
    files: Sequence[ExportedFile]

    @property
    def offsets(self) -> int:
        return sum(each.end - each.start for each in self.files)


class Importing:
    """Some topics of an export, or all of them, on their way to a broker.

    Methods raise ExportError.
    """

    def __init__(
        self, servers: str, folder: Path, topics: Sequence[str] = (), codec: str = "lz4"
    ) -> None:
        if codec not in CODECS:
            raise ExportError(f"compression must be one of {', '.join(CODECS)}, not {codec!r}")
        self._servers = servers
        self._folder = folder.absolute()
        self._codec = CODECS[codec]
        export = read_manifest(self._folder)
        for topic in topics:
            if topic not in export.topics:
                raise ExportError(
                    f"{folder} holds no topic {topic!r}, but {', '.join(export.topics)}"
                )
        self._export = Export({name: export.topics[name] for name in topics or export.topics})

    def run(self, open_spark: OpenSpark, report: Report) -> Imported:
        """Check all files, then write what is missing, and at last the topics' settings."""
        try:
            with KafkaClient(self._servers) as client:
                client.cluster()  # A wrong address is said before Spark starts.
                spark = open_spark()
                self._check_files(spark)
                targets = Targets(client, self._servers, self._folder, self._export)
                targets.prepare()
                records = self._restored(spark, targets, report)
                Patience(answered=True).ask(targets.finish)
        except (KafkaError, SourceError, OSError) as error:
            raise ExportError(str(error)) from error
        return Imported(records, len(self._parts()))

    def _check_files(self, spark: SparkSession) -> None:
        files = self._export.all_files()
        faults = do_all(spark, len(files), partial(_check_one, self._folder, files)).faults
        if faults:
            shown = "; ".join(faults[:_FAULTS_SHOWN])
            more = f" and {len(faults) - _FAULTS_SHOWN} more" if faults[_FAULTS_SHOWN:] else ""
            raise ExportError(f"{self._folder} is no whole export any more: {shown}{more}")

    def _parts(self) -> list[_Part]:
        """Return all partitions, those with the most first."""
        parts = []
        for name, topic in self._export.topics.items():
            files = list(self._export.files(name))
            for index, end in enumerate(topic.ends):
                target = TopicPartition(name, index)
                own = [each for each in files if each.source == target]
                parts.append(_Part(target, end, own))
        return sorted(parts, key=lambda each: -each.offsets)

    def _restored(self, spark: SparkSession, targets: Targets, report: Report) -> int:
        parts = self._parts()
        work = partial(_restore_one, self._servers, self._folder, parts, self._codec)
        total = sum(each.offsets for each in parts)
        with reported(lambda: _done(parts, targets.ends()), total, report):
            found = do_all(spark, len(parts), work)
        if found.faults:
            raise ExportError(found.faults[0])
        return found.rows


def _done(parts: Iterable[_Part], ends: dict[TopicPartition, int]) -> int:
    return sum(
        max(0, min(ends[each.target], file.end) - file.start)
        for each in parts
        for file in each.files
    )


def _check_one(folder: Path, files: Sequence[ExportedFile], number: int) -> int:
    check_file(folder, files[number], COLUMNS)
    return 0


def _restore_one(
    servers: str, folder: Path, parts: Sequence[_Part], codec: int, number: int
) -> int:
    part = parts[number]
    return restore(servers, folder, part.files, part.target, part.end, codec)
