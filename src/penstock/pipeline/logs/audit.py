"""A data folder judged whole, in parallel: each segment is a row, and Spark shares them out."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException

from penstock.log.layout import IDENTITY_FILE, topics_directory
from penstock.log.segments import segment_bases, segment_path
from penstock.pipeline.carried import CarriedFunction
from penstock.pipeline.causes import cause_of
from penstock.pipeline.logs.segment_check import Checked, Damage, check_segment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

TASK_BYTES: Final = 256 << 20
"""About what one task checks: a second or less, so that progress is seen."""

_SEGMENTS: Final = "directory string, base bigint"
_CHECKED: Final = "directory string, checked string, error string"


class AuditError(Exception):
    """There is no data folder here, or it can't be read; the message says what to do."""


@dataclass(frozen=True)
class Segment:
    """One file of a log."""

    directory: Path
    base: int
    size: int


@dataclass
class LogAudit:
    """What is right and wrong with one partition's log."""

    topic: str
    """Its full name: tenant, namespace and name."""
    partition: int
    directory: str
    segments: int = 0
    start: int = 0
    end: int = 0
    batches: int = 0
    records: int = 0
    size: int = 0
    """Bytes."""
    damage: list[str] = field(default_factory=list)
    """What is lost or doubled, each with its place."""
    open: dict[int, int] = field(default_factory=dict)
    """The first offset of each transaction without an end, by producer id."""
    torn_bytes: int = 0
    """Behind the last whole batch: one that is being written, or was when its writer died."""

    @property
    def is_sound(self) -> bool:
        return not self.damage


def segments_of(data_folder: Path) -> list[Segment]:
    """Return all segments below a data folder; raises AuditError."""
    try:
        directories = [
            each.parent for each in topics_directory(data_folder).glob(f"*/*/{IDENTITY_FILE}")
        ]
        found = [
            Segment(directory, base, segment_path(directory, base).stat().st_size)
            for directory in sorted(directories)
            for base in segment_bases({each.name: 0 for each in directory.iterdir()})
        ]
    except OSError as error:
        raise AuditError(f"{error.filename} can't be read: {error.strerror}") from error
    if not topics_directory(data_folder).is_dir():
        raise AuditError(f"{data_folder} is no data folder of a broker: it has no folder topics")
    return found


def audit(spark: SparkSession, data_folder: Path) -> list[LogAudit]:
    """Judge every byte of every log below a data folder. Raises AuditError.

    The broker may run: what it has not written whole yet is `torn_bytes`.
    """
    segments = sorted(segments_of(data_folder), key=lambda each: -each.size)
    if not segments:
        return []
    tasks = max(1, min(len(segments), sum(each.size for each in segments) // TASK_BYTES + 1))
    rows = [(str(each.directory), each.base) for each in segments]
    frame = spark.createDataFrame(rows, _SEGMENTS).repartition(tasks)
    try:
        lines = frame.mapInArrow(CarriedFunction(_check_all), _CHECKED).collect()
    except PySparkException as failure:
        raise AuditError(cause_of(failure)) from failure
    found: dict[str, list[Checked]] = {}
    failed: dict[str, list[str]] = {}
    for directory, checked, error in lines:
        if error is not None:
            failed.setdefault(directory, []).append(error)
        else:
            found.setdefault(directory, []).append(_restored(json.loads(checked)))
    directories = sorted({*found, *failed})
    return [
        log_audit(Path(each), found.get(each, []), failed.get(each, [])) for each in directories
    ]


def log_audit(directory: Path, checked: Sequence[Checked], errors: Sequence[str] = ()) -> LogAudit:
    """Put together what is known of the segments of one log."""
    log = LogAudit(*_names(directory), str(directory), damage=list(errors))
    expected: int | None = None
    for each in sorted(checked, key=lambda one: one.base_offset):
        log.start = each.base_offset if expected is None else log.start
        if expected is not None and each.base_offset != expected:
            log.damage.append(_gap(expected, each.base_offset))
        expected = log.end = each.end_offset
        log.segments += 1
        log.batches += each.batches
        log.records += each.records
        log.size += each.size
        log.torn_bytes = each.torn_bytes
        log.damage.extend(_lost(directory, each.base_offset, damage) for damage in each.damage)
        log.damage.extend(f"offset {offset} was written before" for offset in each.repeated)
        log.open = {key: at for key, at in log.open.items() if key not in each.ended} | each.open
    return log


def _names(directory: Path) -> tuple[str, int]:
    """Return the full name of the topic of a log, and the partition's number."""
    partition = json.loads((directory / IDENTITY_FILE).read_bytes())
    try:
        topic = json.loads((directory.parent / IDENTITY_FILE).read_bytes())
        name = "/".join(topic[each] for each in ("tenant", "namespace", "topic"))
    except (OSError, ValueError, KeyError, TypeError):
        name = partition["topic"]  # which it had when the partition was made
    return name, partition["index"]


def _check_all(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            checked, failure = None, None
            try:
                found = check_segment(Path(row["directory"]), row["base"])
                checked = json.dumps(asdict(found))
            except FileNotFoundError:
                continue  # Retention and compaction remove segments while they are looked at.
            except OSError as error:
                failure = f"segment {row['base']} can't be read: {error.strerror}"
            line = {"directory": row["directory"], "checked": checked, "error": failure}
            yield pa.RecordBatch.from_pylist([line], _line_schema())


def _line_schema() -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in ("directory", "checked", "error")])


def _restored(stored: dict[str, Any]) -> Checked:
    stored["damage"] = [Damage(*each) for each in stored["damage"]]
    stored["open"] = {int(producer): offset for producer, offset in stored["open"].items()}
    return Checked(**stored)


def _gap(expected: int, found: int) -> str:
    if found < expected:
        return f"offsets {found} up to {expected} are there twice"
    return f"offsets {expected} up to {found} are missing: no segment holds them"


def _lost(directory: Path, base: int, damage: Damage) -> str:
    file = segment_path(directory, base).name
    return (
        f"offsets {damage.start} up to {damage.end} are damaged: "
        f"bytes {damage.position} to {damage.end_position} of {file}"
    )
