"""Topics as Parquet files, each record once, that `penstock import` makes the same topics of.

The ranges of offsets are decided once and kept, so a run that was ended goes on with what is left.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from penstock.clients.kafka.client import KafkaClient, KafkaError
from penstock.pipeline.logs.export_files import STAGING, write_file
from penstock.pipeline.logs.manifest import (
    COLUMNS,
    MANIFEST,
    PLAN,
    Export,
    ExportedFile,
    ExportedTopic,
    ExportError,
    read_export,
)
from penstock.pipeline.logs.numbered import OpenSpark, do_all
from penstock.pipeline.logs.progress import Report, reported
from penstock.pipeline.source.cluster import KafkaCluster
from penstock.pipeline.source.errors import DataLossError, SourceError
from penstock.pipeline.source.offsets import OffsetRange, TopicPartition
from penstock.pipeline.source.option_values import OptionError
from penstock.pipeline.source.options import SERVERS, SourceOptions, parse
from penstock.pipeline.source.planning import Planner, Task
from penstock.pipeline.tables.interface import TableError
from penstock.pipeline.tables.locks import locked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_LOCK: Final = "_lock"


@dataclass(frozen=True)
class Exported:
    """What a run has made."""

    rows: int
    files: int


class Exporting:
    """One export into a folder. Use it as a context: nobody else exports to the folder meanwhile.

    Methods raise ExportError.
    """

    def __init__(
        self, servers: str, topics: Sequence[str], folder: Path, read_mode: str = "auto"
    ) -> None:
        self._folder = folder.absolute()
        self._options = _options(servers, topics, read_mode)
        self._cluster = KafkaCluster(self._options)

    def __enter__(self) -> Self:
        if (self._folder / MANIFEST).exists():
            raise ExportError(
                f"{self._folder} holds a whole export already: name a folder that is new"
            )
        if not (self._folder / PLAN).exists() and _is_used(self._folder):
            raise ExportError(f"{self._folder} is not empty: name a folder that is new")
        self._lock = locked(self._folder / _LOCK, str(self._folder))
        try:
            self._lock.__enter__()
        except (TableError, OSError) as error:
            raise ExportError(str(error)) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.close()
        self._lock.__exit__(None, None, None)

    def run(self, open_spark: OpenSpark, report: Report) -> Exported:
        """Write what is missing, and the manifest when all is there."""
        try:
            export, tasks = self._planned()
            files = export.all_files()
            shutil.rmtree(self._folder / STAGING, ignore_errors=True)
            rows = self._written(open_spark, files, tasks, report) if files else 0
            export.write(self._folder / MANIFEST)
            (self._folder / PLAN).unlink()
            shutil.rmtree(self._folder / STAGING, ignore_errors=True)
            self._cluster.release()
        except DataLossError as error:
            raise ExportError(
                f"{str(error).split('. Begin again')[0]}: retention took it before it was "
                f"exported. Remove {self._folder} and begin again"
            ) from error
        except (SourceError, OptionError, KafkaError, OSError) as error:
            raise ExportError(str(error)) from error
        return Exported(rows, len(files))

    def _planned(self) -> tuple[Export, list[Task]]:
        planner = Planner(self._options, self._cluster)
        try:
            export = read_export(self._folder / PLAN)
        except FileNotFoundError:
            export = self._begun(planner)
        self._check_same(export)
        files = export.all_files()
        # What is there already may be gone from the log by now.
        missing = [each for each in files if not (self._folder / each.name).exists()]
        starts = {each.source: each.start for each in reversed(missing)}
        ends = {each.source: each.end for each in missing}
        found = {task.range.source: task for task in planner.tasks(starts, ends)}
        return export, [_task(each, found.get(each.source)) for each in files]

    def _begun(self, planner: Planner) -> Export:
        """Decide what is exported, durably."""
        ids = planner.topic_ids()
        start, end = planner.batch()
        ranges: dict[TopicPartition, list[OffsetRange]] = {}
        for task in planner.tasks(start, end):
            ranges.setdefault(task.range.source, []).append(task.range)
        topics = {}
        with KafkaClient(self._options.servers) as client:
            for topic in self._options.topics:
                edges = tuple(
                    (start[source], *(each.end for each in ranges.get(source, ())))
                    for source in sorted(start)
                    if source.topic == topic
                )
                topics[topic] = ExportedTopic(ids[topic], client.own_topic_config(topic), edges)
        export = Export(topics)
        export.write(self._folder / PLAN)
        return export

    def _check_same(self, export: Export) -> None:
        if set(export.topics) != set(self._options.topics):
            raise ExportError(
                f"{self._folder} holds an export of {', '.join(export.topics)} that was "
                "interrupted: name the same topics, or another folder"
            )
        for topic, found in self._cluster.topic_ids(export.topics).items():
            if export.topics[topic].id != found:
                raise ExportError(
                    f"topic {topic} was deleted and made anew since this export was begun: remove "
                    f"{self._folder} and begin again"
                )

    def _written(
        self,
        open_spark: OpenSpark,
        files: list[ExportedFile],
        tasks: list[Task],
        report: Report,
    ) -> int:
        write = partial(_write_one, self._folder, files, tasks, self._options)
        spark = open_spark()
        with reported(partial(_offsets_there, self._folder, files), _offsets(files), report):
            found = do_all(spark, len(files), write)
        if found.faults:
            raise ExportError(found.faults[0])
        return found.rows


def _options(servers: str, topics: Sequence[str], read_mode: str) -> SourceOptions:
    try:
        return parse(
            {
                SERVERS: servers,
                "subscribe": ",".join(topics),
                "columns": ",".join(COLUMNS),
                "includeHeaders": "true",
                "kafka.isolation.level": "read_committed",
                "readMode": read_mode,
            },
            streaming=False,
        )
    except OptionError as error:
        raise ExportError(str(error)) from error


def _is_used(folder: Path) -> bool:
    return folder.exists() and any(each.name != _LOCK for each in folder.iterdir())


def _task(file: ExportedFile, of_partition: Task | None) -> Task:
    span = OffsetRange(file.source, file.start, file.end)
    return Task(span, None, None) if of_partition is None else replace(of_partition, range=span)


def _write_one(
    folder: Path,
    files: Sequence[ExportedFile],
    tasks: Sequence[Task],
    options: SourceOptions,
    number: int,
) -> int:
    return write_file(folder, files[number], tasks[number], options)


def _offsets(files: Iterable[ExportedFile]) -> int:
    return sum(each.end - each.start for each in files)


def _offsets_there(folder: Path, files: Iterable[ExportedFile]) -> int:
    return _offsets(each for each in files if (folder / each.name).exists())
