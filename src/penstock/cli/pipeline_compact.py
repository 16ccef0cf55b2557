"""`penstock pipeline compact`: few large files of a table in place of many small ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.failure import CommandError
from penstock.cli.output import Format, FormatOption, counted, print_json
from penstock.cli.pipeline_files import is_definition, loaded

if TYPE_CHECKING:
    from penstock.pipeline.tables.table import Table


def compact_command(
    place: Annotated[
        str,
        typer.Argument(help="The pipeline's file, or where its table is.", show_default=False),
    ],
    catalog: Annotated[
        str | None, typer.Option(help="The Iceberg catalogue of a table that is not named by file.")
    ] = None,
    output: Annotated[Format, FormatOption] = Format.TABLE,
) -> None:
    """Merge all small files of a Delta or Iceberg table to files of 128 MB.

    A running job goes on meanwhile, and so do readers: rows stay as they are. The job itself merges
    small files too, as soon as they are many.
    """
    try:
        from penstock.pipeline.tables.interface import TableError
    except ModuleNotFoundError as error:
        raise CommandError(f"{error}: pip install 'penstock-broker[spark]'") from error
    try:
        merged = _table(place, catalog).compact()
    except TableError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"files of {place} can't be merged: {error.strerror}") from error
    if output is Format.JSON:
        print_json({"merged": merged.files, "into": merged.into})
    elif merged.files:
        typer.echo(f"{place}: {counted(merged.files, 'small file')} became {merged.into}")
    else:
        typer.echo(f"{place}: no two small files are left to merge")


def _table(place: str, catalog: str | None) -> Table:
    """Return the table that is meant; raises TableError and CommandError."""
    from penstock.pipeline.tables.interface import TableConfig
    from penstock.pipeline.tables.opening import format_of, open_table

    if is_definition(Path(place)):
        from penstock.pipeline.jobs.settings import table_config

        return open_table(table_config(loaded(Path(place))))
    return open_table(TableConfig(place, format_of(place), catalog=catalog))
