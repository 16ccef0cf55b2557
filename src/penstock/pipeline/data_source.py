"""The PySpark data source `penstock`, batch and streaming."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from penstock.pipeline.sink.starting import batch_writer, stream_writer
from penstock.pipeline.source.options import includes_headers, parse
from penstock.pipeline.source.readers import BatchReader, StreamReader
from penstock.pipeline.source.schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class PenstockSource(DataSource):
    """Topics as rows and rows as records; the options are those of Spark's Kafka source and sink.

    docs/spark.md and docs/spark-sink.md list them.
    """

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> StructType:
        return spark_schema(include_headers=includes_headers(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  # Spark's signature
        return BatchReader(parse(self.options, streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return StreamReader(parse(self.options, streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,
    ) -> DataSourceStreamWriter:
        return stream_writer(self.options, schema, overwrite=overwrite)
