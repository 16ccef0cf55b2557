"""Rows of a pipeline as messages of a topic: each batch is one epoch of the sink, written once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from penstock.pipeline.jobs.access import options_of
from penstock.pipeline.jobs.gate import TABLE
from penstock.pipeline.jobs.settings import checkpoint_of, source_options
from penstock.pipeline.jobs.writing import Stepped, Written, query_of
from penstock.pipeline.sink.fingerprints import STREAM, rows_of
from penstock.pipeline.sink.options import parse
from penstock.pipeline.sink.starting import ask_broker
from penstock.pipeline.sink.writers import Written as WrittenTask
from penstock.pipeline.sink.writers import abort, commit, written
from penstock.pipeline.tables.staging import Piece

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession

    from penstock.pipeline.jobs.config import PipelineConfig
    from penstock.pipeline.jobs.gate import RowWriter
    from penstock.pipeline.sink.options import SinkOptions

JSON: Final = "json"
"""The column of a parsed value's fields as JSON, before it is flattened."""

_AS_READ: Final = {"key": "key", "value": "value", "headers": "headers", "timestamp": "timestamp"}
_PARSED: Final = {each: f"_{each}" for each in _AS_READ} | {"value": f"_{JSON}"}

_JSON_OPTIONS: Final = {
    # All of the columns, and all of their digits: what reads it finds what was read.
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
}


def sink_options(config: PipelineConfig) -> SinkOptions:
    """Return the options of the sink that a job writes with.

    Raises OptionError and DefinitionError.
    """
    target = config.target_topic
    assert target is not None, "a job without a table has a topic"
    given = {"penstock.bootstrap.servers": target.servers, "topic": target.topic}
    return parse(options_of(target.access) | given, streaming=True)


@dataclass(frozen=True)
class MessageWriter:
    """Writes a task's rows in a transaction that the driver ends; pickled to the executors."""

    options: SinkOptions
    parsed: bool

    def write(self, batches: Iterable[pa.RecordBatch], query: str, batch: int) -> Iterator[Piece]:
        """Write rows; yield how many, and whose transaction has them. Raises SinkError."""
        columns = _PARSED if self.parsed else _AS_READ
        messages = (
            each.select(list(columns.values())).rename_columns(list(columns)) for each in batches
        )
        message = written(messages, _writer(query), batch, self.options)
        yield Piece(json.dumps(message.outcome), message.rows, 0, (), b"")

    def commit(self, query: str, batch: int, lines: Sequence[Row], checkpoint: str) -> None:
        """Make what tasks have written visible at once, by what they yielded. Raises SinkError."""
        writer = _writer(query)
        messages = [WrittenTask(writer, json.loads(each.staged), each.rows) for each in lines]
        commit(self.options, writer, batch, messages, rows_of(checkpoint, writer, batch))

    def abort(self, query: str) -> None:
        """Give up what is open."""
        abort(self.options, _writer(query))


class ToTopic(Stepped):
    """Spark computes the rows, and its tasks write them to a topic."""

    def __init__(self, config: PipelineConfig) -> None:
        super().__init__(config)
        self._messages = MessageWriter(sink_options(config), config.parsing is not None)

    def look(self) -> None:
        ask_broker(self._messages.options)

    def begin(self, spark: SparkSession) -> DataFrame:
        source = spark.readStream.format("penstock").options(**source_options(self._config))
        return self.computed(source.load())

    def with_value(self, rows: DataFrame) -> DataFrame:
        return rows.withColumn(JSON, f.to_json("value", _JSON_OPTIONS))

    def prepare(self, schema: pa.Schema) -> RowWriter:  # noqa: ARG002
        return self._messages

    def write(self, frame: DataFrame, batch: int) -> Written:
        try:
            return super().write(frame, batch)
        except Exception:
            # What is open keeps readers of the topic waiting until its time is over.
            self._messages.abort(query_of(frame))
            raise

    def commit(self, query: str, batch: int, lines: Sequence[Row]) -> int:
        written = [line for line in lines if line.into == TABLE]
        checkpoint = str(checkpoint_of(self._config, self.table))
        self._messages.commit(query, batch, written, checkpoint)
        return sum(line.rows for line in written)


def _writer(query: str) -> str:
    return f"{STREAM}{query}"
