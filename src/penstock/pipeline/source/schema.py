"""The columns of a read, for Spark and for Arrow: those of Spark's own Kafka source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.pipeline.values.options import SCHEMA_VERSION
from penstock.records.arrow import HEADERS, TIMESTAMP

_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])

_TYPES: Final[dict[str, tuple[DataType, pa.DataType]]] = {
    "key": (BinaryType(), pa.binary()),
    "value": (BinaryType(), pa.binary()),
    "topic": (StringType(), pa.string()),
    "partition": (IntegerType(), pa.int32()),
    "offset": (LongType(), pa.int64()),
    "timestamp": (TimestampType(), TIMESTAMP),
    "timestampType": (IntegerType(), pa.int32()),
    "headers": (ArrayType(_HEADER), HEADERS),
    SCHEMA_VERSION: (LongType(), pa.int64()),
}


def spark_schema(columns: Sequence[str]) -> StructType:
    """The schema that Spark plans with."""
    return StructType([StructField(name, _TYPES[name][0]) for name in columns])


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """The same in Arrow; Spark 4.3 refuses a batch whose schema differs in anything."""
    return pa.schema([pa.field(name, _TYPES[name][1]) for name in columns])
