"""The PySpark data source `penstock`, batch and streaming."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from penstock.pipeline.source.options import includes_headers, parse
from penstock.pipeline.source.readers import BatchReader, StreamReader
from penstock.pipeline.source.schema import spark_schema
from penstock.pipeline.values.options import parse_value_options

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class PenstockSource(DataSource):
    """Topics as rows; the options are those of Spark's Kafka source (docs/spark.md)."""

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> StructType:
        raw = spark_schema(include_headers=includes_headers(self.options))
        if parse_value_options(self.options) is None:
            return raw
        options = parse(self.options, streaming=False)
        assert options.values is not None
        from penstock.pipeline.values.reading import (  # noqa: PLC0415  # only where it is needed
            typed_schema,
        )

        return typed_schema(raw, options.values, options.topics)

    def reader(self, schema: StructType) -> DataSourceReader:
        return BatchReader(parse(self.options, streaming=False), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return StreamReader(parse(self.options, streaming=True), schema)
