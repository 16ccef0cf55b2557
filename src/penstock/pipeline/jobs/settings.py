"""What a pipeline's definition asks of the source and of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.pipeline.jobs.access import options_of
from penstock.pipeline.jobs.config import DefinitionError, WriteMode
from penstock.pipeline.source.options import ReadMode
from penstock.pipeline.tables.changes import check_keys, columns_of
from penstock.pipeline.tables.interface import TableConfig, TableError
from penstock.pipeline.tables.partitions import parse_partitions
from penstock.pipeline.values.options import DEAD_LETTER, ON_PARSE_ERROR, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pyarrow as pa

    from penstock.pipeline.jobs.config import PipelineConfig
    from penstock.pipeline.tables.table import Table

_COUNTS_NOTHING: Final = ("pulsar://", "pulsar+ssl://")


def checkpoint_of(config: PipelineConfig, table: Table) -> Path:
    """Return where Spark keeps a job's offsets."""
    return (config.checkpoint or table.checkpoint).absolute()


def table_config(config: PipelineConfig) -> TableConfig:
    """Return the table that a job writes."""
    home = str(config.table.absolute())
    return TableConfig(
        config.store or home,
        config.table_format,
        config.compression,
        partition_by=config.partition_by,
        keys=config.key,
        changes=config.changes,
        catalog=config.catalog,
        home=home,
        backfill=config.backfill,
    )


def check_columns(config: PipelineConfig, schema: pa.Schema) -> None:
    """Raise DefinitionError where a table can't have these keys or parts."""
    try:
        if config.mode is WriteMode.UPSERT:
            schema = columns_of(schema, config.changes)
            check_keys(config.key, schema)
        parse_partitions(config.partition_by, schema)
    except TableError as error:
        raise DefinitionError(str(error)) from error


def quarantine_config(config: PipelineConfig) -> TableConfig:
    """Return the table of the rows that do not meet an expectation."""
    table = table_config(config)
    return TableConfig(
        f"{table.location}-quarantine",
        table.format,
        table.compression,
        catalog=table.catalog,
        home=f"{table.home}-quarantine",
        backfill=table.backfill,
    )


def source_options(config: PipelineConfig) -> dict[str, str]:
    """Return the options by which the source reads what a job reads, as a stream.

    Raises DefinitionError.
    """
    if config.servers.strip().lower().startswith(_COUNTS_NOTHING):
        raise DefinitionError(
            "read.server: a pipeline can't read from pulsar://, for a batch of it is so many rows, "
            "and Pulsar's message ids do not say how many lie between two of them. Read such a "
            "topic with spark.readStream and a foreachBatch of your own"
        )
    return _common_options(config) | {
        "startingOffsets": config.starting_offsets,
        "maxOffsetsPerTrigger": str(config.batch_rows),
    }


def range_options(config: PipelineConfig, ends: Mapping[str, str]) -> dict[str, str]:
    """Return the options by which the source reads the same between two positions."""
    return _common_options(config) | dict(ends)


def _common_options(config: PipelineConfig) -> dict[str, str]:
    options = options_of(config.access) | {
        "penstock.bootstrap.servers": config.servers,
        "subscribe": ",".join(config.topics),
        "includeHeaders": str(config.include_headers or config.target_topic is not None),
        "failOnDataLoss": str(config.fail_on_data_loss),
    }
    if config.read_mode is not ReadMode.AUTO:
        options["readMode"] = config.read_mode.value
    parsing = config.parsing
    if parsing is not None:
        options |= {SCHEMA: parsing.schema, ON_PARSE_ERROR: parsing.on_error.value}
        if parsing.dead_letter is not None:
            options[DEAD_LETTER] = str(parsing.dead_letter.absolute())
    return options
