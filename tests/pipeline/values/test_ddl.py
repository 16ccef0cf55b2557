from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from penstock.pipeline.values.conforming import arrow_struct, spark_struct
from penstock.pipeline.values.ddl import parse_ddl
from penstock.pipeline.values.errors import SchemaError

ALL = (
    "a BOOLEAN, b TINYINT, c smallint, d INT, e BIGINT, f FLOAT, g DOUBLE, h STRING, i DATE, "
    "j TIMESTAMP, k TIMESTAMP_NTZ, l DECIMAL(12,3), m DECIMAL, n ARRAY<ARRAY<INT>>, "
    "o MAP<STRING, ARRAY<DOUBLE>>, p STRUCT<x: INT, `y z`: STRUCT<q: BIGINT>>, "
    "`a``b c` INT COMMENT 'it''s', r LONG"
)


def test_ddl_is_read_as_spark_reads_it(spark: SparkSession) -> None:
    text = ALL.replace("'it''s'", "'its'")
    assert spark_struct(parse_ddl(text)) == without_comments(StructType.fromDDL(text))


def without_comments(struct: StructType) -> StructType:
    for each in struct.fields:
        each.metadata = {}
    return struct


def test_what_spark_has_comes_back() -> None:
    struct = arrow_struct(spark_struct(parse_ddl(ALL.replace("'it''s'", "'its'"))))
    assert struct.field("n").type.value_type.value_type == pa.int32()


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("id", "a type such as BIGINT.* is expected at ''"),
        ("id NUMBER", "a type such as BIGINT.* is expected at 'NUMBER'"),
        ("id INT,", "more is expected"),
        ("id INT name STRING", "a comma or the end is expected at 'name STRING'"),
        ("id INT NOT NULL", "a comma or the end is expected at 'NOT NULL'"),
        ("a ARRAY<INT", "> is expected"),
        ("a MAP<INT, INT>", "keys of type STRING"),
        ("a STRUCT<x: INT", "a comma or > is expected"),
        ("a DECIMAL(39)", "a precision of at most 38"),
        ("a DECIMAL(5, 6)", "a precision of at most 38"),
        ("a INT, a STRING", "column a is there twice"),
        ("a " + "ARRAY<" * 100 + "INT", "nested more than 64 levels"),
        ("a BINARY", "a type such as"),
        ("<html>", "a column's name is expected"),
        ("ftp://registry", "a schema is DDL such as"),
        ("%", "more is expected at '%'"),
    ],
)
def test_what_is_no_ddl_says_where(ddl: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse_ddl(ddl)
