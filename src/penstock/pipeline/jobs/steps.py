"""What a pipeline does with rows before they are written, as Spark's own operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_type

from penstock.pipeline.jobs.config import Deduplication, DefinitionError, Expectation, Otherwise
from penstock.pipeline.tables.interface import NO_ENVELOPE
from penstock.pipeline.values.debezium import envelope_of
from penstock.pipeline.values.flattening import check_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

MET: Final = "_penstock_met"
"""The column that says of each expectation whether a row meets it."""

_OWN: Final = "_penstock_own"
"""The column of what no other row has, null in a row that may be a double."""


def flattened(rows: DataFrame, path: Sequence[str] = ()) -> DataFrame:
    """Return typed rows with the fields of their value as columns, and all else as `_name`.

    `path` leads to the struct inside the value whose fields are meant. Raises SchemaError where two
    columns would have one name.
    """
    others = [name for name in rows.columns if name != "value"]
    named = [f.col(name).alias(f"_{name}") for name in others]
    fields = rows.select(".".join(("value", *path, "*")))
    check_names(fields.columns, [f"_{name}" for name in others])
    return rows.select(".".join(("value", *path, "*")), *named)


def path_of_envelope(rows: DataFrame) -> tuple[str, ...]:
    """Return where Debezium's envelope is in typed values. Raises DefinitionError for others."""
    found = envelope_of(to_arrow_type(rows.schema["value"].dataType, timezone="UTC"))
    if found is None:
        raise DefinitionError(NO_ENVELOPE)
    return found.path


def held_against(rows: DataFrame, expectations: Sequence[Expectation]) -> DataFrame:
    """Add the column MET. Raises DefinitionError where a condition is none on these columns."""
    for each in expectations:
        _check(rows, f"expectation {each.name!r}", f.expr(each.that), "boolean")
    return rows.withColumn(
        MET, f.array(*(f.coalesce(f.expr(e.that), f.lit(False)) for e in expectations))
    )


def deduplicated(
    rows: DataFrame,
    deduplication: Deduplication,
    expectations: Sequence[Expectation],
    places: Sequence[str],
) -> DataFrame:
    """Keep the first of rows with the same values within some time.

    Two nulls are not the same value, and rows that do not stay for another reason take nobody's
    place: such rows pass, each by the columns `places` that no two rows share.
    """
    _check(rows, "deduplicate.time", f.col(_quoted(deduplication.time)), "timestamp")
    within = f"{deduplication.within_seconds} seconds"
    alone = f.lit(False)
    for name in deduplication.by:
        _check(rows, "deduplicate.by", f.col(_quoted(name)).isNull(), "boolean")
        alone |= f.col(_quoted(name)).isNull()
    for index, each in enumerate(expectations):
        if each.otherwise in {Otherwise.DROP, Otherwise.QUARANTINE}:
            alone |= ~f.col(MET)[index]
    own = f.when(alone, f.concat_ws("-", *places))
    numbered = rows.withWatermark(deduplication.time, within).withColumn(_OWN, own)
    return numbered.dropDuplicatesWithinWatermark([*deduplication.by, _OWN]).drop(_OWN)


def _quoted(name: str) -> str:
    return "`{}`".format(name.replace("`", "``"))


def _check(rows: DataFrame, what: str, column: Column, kind: str) -> None:
    from pyspark.errors import AnalysisException  # noqa: PLC0415

    try:
        (found,) = rows.select(column).schema.fields
    except AnalysisException as error:
        raise DefinitionError(f"{what}: {str(error).strip().splitlines()[0]}") from None
    if found.dataType.typeName() != kind:
        raise DefinitionError(f"{what} must be a {kind}, and is a {found.dataType.typeName()}")
