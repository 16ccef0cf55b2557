"""Rows of random columns for a pipeline: some are bad, late, there twice, or not as expected."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from hypothesis import strategies as st

from penstock.pipeline.jobs.config import Deduplication, Expectation, Otherwise
from penstock.pipeline.values.ddl import parse_ddl
from random_json import NAMES, TYPES, Type, as_column, ddl_of, objects

Row: TypeAlias = dict[str, Any]

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
KNOWN: dict[str, Type] = {"id": "STRING", "at": "TIMESTAMP", "n": "INT", "s": "STRING"}
"""Columns that conditions are about; others may be of any type."""

CONDITIONS: dict[str, Callable[[Row], bool | None]] = {
    "n < 3": lambda row: None if row["n"] is None else row["n"] < 3,
    "s IS NOT NULL": lambda row: row["s"] is not None,
    "length(s) < 2 AND n IS NOT NULL": lambda row: (
        row["n"] is not None and row["s"] is not None and len(row["s"]) < 2
    ),
    "at IS NULL OR id IS NOT NULL": lambda row: row["at"] is None or row["id"] is not None,
}


class Sent(NamedTuple):
    """One message."""

    partition: int
    value: bytes
    row: Row | None
    """What its columns hold; None where it is not of its schema."""


class Rows(NamedTuple):
    partitions: int
    ddl: str
    expectations: tuple[Expectation, ...]
    deduplication: Deduplication | None
    stages: list[list[Sent]]
    """What is sent between two runs."""


@st.composite
def random_rows(draw: st.DrawFn) -> Rows:
    others = draw(st.dictionaries(NAMES, TYPES, max_size=3))
    columns = dict(draw(st.permutations([*KNOWN.items(), *others.items()])))
    partitions = draw(st.integers(1, 2))
    schema = parse_ddl(ddl_of(columns))
    sent = _messages(columns, schema, partitions)
    stages = draw(st.lists(st.lists(sent, min_size=1, max_size=25), min_size=1, max_size=3))
    conditions = draw(st.lists(st.sampled_from(sorted(CONDITIONS)), max_size=3, unique=True))
    otherwise = st.sampled_from([Otherwise.KEEP, Otherwise.DROP, Otherwise.QUARANTINE])
    expectations = tuple(Expectation(f"that {each}", each, draw(otherwise)) for each in conditions)
    by = draw(
        st.sampled_from([None, ("id",), ("id", "s")] if expectations else [("id",), ("s", "id")])
    )
    within = draw(st.integers(1, 30))
    deduplication = None if by is None else Deduplication(by, "at", within * 60.0)
    return Rows(partitions, ddl_of(columns), expectations, deduplication, stages)


@st.composite
def _messages(
    draw: st.DrawFn, columns: dict[str, Type], schema: pa.StructType, partitions: int
) -> Sent:
    partition = draw(st.integers(0, partitions - 1))
    row = draw(objects({name: of for name, of in columns.items() if name not in KNOWN}))
    row |= {
        "id": draw(st.sampled_from(["a", "b", "c", None])),
        "n": draw(st.sampled_from([0, 1, 5, None])),
        "s": draw(st.sampled_from(["x", "long", None])),
    }
    minutes = draw(st.none() | st.integers(0, 90))
    at = None if minutes is None else BEGIN + timedelta(minutes=minutes)
    said = row | {"at": None if at is None else at.isoformat()}
    match draw(st.integers(0, 9)):
        case 0:
            return Sent(partition, b"no JSON", None)
        case 1:
            return Sent(partition, json.dumps(said | {"n": "many"}).encode(), None)
    return Sent(partition, json.dumps(said).encode(), as_column(row, schema) | {"at": at})
