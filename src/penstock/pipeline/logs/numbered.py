"""Pieces of work by their numbers, each a task of Spark's; what fails of it is said, not thrown."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.errors import PySparkException

from penstock.clients.kafka.client import KafkaError
from penstock.pipeline.carried import CarriedFunction
from penstock.pipeline.causes import cause_of
from penstock.pipeline.logs.manifest import ExportError
from penstock.pipeline.source.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

OpenSpark: TypeAlias = "Callable[[], SparkSession]"
"""Returns the session that does the work; it is called once all else is found well."""

Work: TypeAlias = Callable[[int], int]
"""Does the piece of a number, and returns how many rows it had. Pickled to the executors."""

_FAULTS: Final = (ExportError, SourceError, KafkaError, OSError, pa.ArrowException)
"""What a piece may meet."""

_DONE: Final = "rows long, fault string"


class Outcome(NamedTuple):
    """What became of all pieces: rows, and what went wrong."""

    rows: int
    faults: list[str]


def do_all(spark: SparkSession, count: int, work: Work) -> Outcome:
    """Have all pieces done. What one of them raises of `_FAULTS` is a fault.

    Raises ExportError where Spark itself fails.
    """
    if not count:
        return Outcome(0, [])
    numbers = spark.range(0, count, 1, count)
    done = numbers.mapInArrow(CarriedFunction(partial(_do_some, work)), _DONE)
    try:
        found = done.collect()
    except PySparkException as error:
        raise ExportError(cause_of(error)) from error
    return Outcome(
        sum(rows for rows, _ in found), sorted(fault for _, fault in found if fault is not None)
    )


def _do_some(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = pa.schema([("rows", pa.int64()), ("fault", pa.string())])
    for batch in batches:
        for number in batch.column(0).to_pylist():
            rows, fault = 0, None
            try:
                rows = work(number)
            except _FAULTS as error:
                fault = str(error)
            yield pa.RecordBatch.from_pydict({"rows": [rows], "fault": [fault]}, schema)
