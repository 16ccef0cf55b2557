"""The PySpark data source `penstock`, batch and streaming."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from penstock.pipeline.garbage import spare_modules
from penstock.pipeline.source.options import columns_of, parse
from penstock.pipeline.source.readers import (
    BatchReader,
    FilteringReader,
    StreamReader,
    failing_later,
)
from penstock.pipeline.source.schema import spark_schema
from penstock.pipeline.values.options import parse_value_options

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

READ: Final = "read"
"""The option by which a table is read and not a topic."""


class PenstockSource(DataSource):
    """Topics as rows and rows as records; the options are those of Spark's Kafka source and sink.

    docs/spark.md and docs/spark-sink.md list them.
    """

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> StructType:
        spare_modules()
        if READ in self.options:
            from penstock.pipeline.live.source import live_schema  # noqa: PLC0415  # if it is read

            return live_schema(self.options)
        raw = spark_schema(columns_of(self.options))
        if parse_value_options(self.options) is None:
            return raw
        options = parse(self.options, streaming=False)
        assert options.values is not None
        from penstock.pipeline.values import reading  # noqa: PLC0415  # if it is needed

        typed = reading.typed_schema(raw, options.values, options.topics)
        return reading.flattened_columns(typed) if options.flatten else typed

    def reader(self, schema: StructType) -> DataSourceReader:
        spare_modules()
        if READ in self.options:
            from penstock.pipeline.live.source import live_reader  # noqa: PLC0415  # see schema

            return live_reader(self.options, schema)
        options = parse(self.options, streaming=False)
        reader = FilteringReader if options.filter_pushdown else BatchReader
        return reader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return failing_later(lambda: StreamReader(parse(self.options, streaming=True), schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from penstock.pipeline.sink.starting import batch_writer  # noqa: PLC0415  # see streamWriter

        return batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,
    ) -> DataSourceStreamWriter:
        # Whoever reads needs none of it, and each stream begins a process that imports this module.
        from penstock.pipeline.sink.starting import stream_writer  # noqa: PLC0415

        return stream_writer(self.options, schema, overwrite=overwrite)
