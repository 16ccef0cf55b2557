"""`penstock pipeline run`: keep a table up to date with topics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.client import DEFAULT_SERVER, Server
from penstock.cli.failure import CommandError, UsageError
from penstock.cli.output import Format, FormatOption, OutputClosed, print_json, print_line
from penstock.cli.paths import path_of
from penstock.cli.pipeline_files import is_definition, loaded
from penstock.cli.pipeline_signals import stop_on_signals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.pipeline.jobs.config import PipelineConfig
    from penstock.pipeline.jobs.job import Progress


PartitionBy = Annotated[
    list[str] | None, typer.Option(help="A column, day(COLUMN) or hour(COLUMN); repeatable.")
]
UpsertBy = Annotated[
    list[str] | None,
    typer.Option(help="A column to keep the newest row of each value of; repeatable."),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        parser=path_of,
        metavar="FOLDER",
        help="Folder of Spark's offsets; inside the table's unless given.",
    ),
]
Table = Annotated[
    str | None, typer.Option("--table", help="Folder of the table, or its URL in an object store.")
]
State = Annotated[
    Path | None,
    typer.Option(
        parser=path_of,
        metavar="FOLDER",
        help="Folder of the run's own files, for a table in an object store.  "
        "[default: NAME-state]",
    ),
]
Catalog = Annotated[
    str | None,
    typer.Option(help="URL of an Iceberg table's catalogue; a file in its folder unless given."),
]
Lines = Annotated[
    bool,
    typer.Option(
        "--json-lines",
        help="Print a line of JSON for each batch, and the result to standard error.",
    ),
]


def run_command(  # noqa: PLR0913, PLR0917  # Typer reads flags from the signature
    call: typer.Context,
    topics: Annotated[
        list[str],
        typer.Argument(help="Topics by their Kafka names; or a pipeline's file, and nothing else."),
    ],
    table: Table = None,
    server: Server = DEFAULT_SERVER,
    table_format: Annotated[
        str, typer.Option(help="What the table is kept as: parquet, delta or iceberg.")
    ] = "parquet",
    partition_by: PartitionBy = None,
    upsert_by: UpsertBy = None,
    checkpoint: Checkpoint = None,
    state: State = None,
    catalog: Catalog = None,
    every: Annotated[
        float | None,
        typer.Option(help="Seconds from batch to batch; without it the job ends when caught up."),
    ] = None,
    starting_offsets: Annotated[
        str, typer.Option(help="Where a new table begins: earliest, latest or JSON.")
    ] = "earliest",
    read_mode: Annotated[
        str, typer.Option(help="Read segment files (log), the broker (wire), or what works (auto).")
    ] = "auto",
    batch_rows: Annotated[int, typer.Option(help="Rows of one batch.", min=1)] = 2_000_000,
    headers: Annotated[bool, typer.Option("--headers", help="Add the column of headers.")] = False,
    ignore_data_loss: Annotated[
        bool, typer.Option("--ignore-data-loss", help="Go on where offsets are gone.")
    ] = False,
    master: Annotated[str, typer.Option(help="Spark's master URL.")] = "local[*]",
    lines: Lines = False,
    output: Annotated[Format, FormatOption] = Format.TABLE,
) -> None:
    """Write topics to a table, each row once, until caught up or until Ctrl-C.

    A run that was ended in whatever way is taken up by the next one with the same table. What else
    a pipeline can do stands in its file, which 'penstock pipeline init' begins.
    """
    try:
        from penstock.pipeline.jobs.config import PipelineConfig, WriteMode
        from penstock.pipeline.source.options import ReadMode
    except ModuleNotFoundError as error:
        raise CommandError(f"{error}: pip install 'penstock-broker[spark]'") from error
    if is_definition(Path(topics[0])):
        _refuse_flags(call, topics)
        _run_and_show(loaded(Path(topics[0])), output, lines=lines)
        return
    if table is None:
        raise UsageError("--table is missing: the folder of the table")
    config = PipelineConfig(
        servers=server,
        topics=tuple(topics),
        **_place(table, state, catalog, table_format),
        partition_by=tuple(partition_by or ()),
        mode=WriteMode.UPSERT if upsert_by else WriteMode.APPEND,
        key=tuple(upsert_by or ()),
        checkpoint=checkpoint,
        interval_seconds=every,
        starting_offsets=starting_offsets,
        read_mode=_choice("--read-mode", read_mode, list(ReadMode)),
        batch_rows=batch_rows,
        include_headers=headers,
        fail_on_data_loss=not ignore_data_loss,
        master=master,
    )
    _run_and_show(config, output, lines=lines)


def _refuse_flags(call: typer.Context, places: list[str]) -> None:
    if len(places) > 1:
        raise UsageError(f"{places[0]} is a pipeline's file, and one is run at a time")
    for name in call.params:
        source = call.get_parameter_source(name)
        if source and source.name == "COMMANDLINE" and name not in {"topics", "output", "lines"}:
            flag = "--" + name.replace("_", "-")
            raise UsageError(
                f"{flag} can't be given beside a pipeline's file: set it in {places[0]}"
            )


def _place(
    table: str, state: Path | None, catalog: str | None, table_format: str
) -> dict[str, Any]:
    """Return where the table lies, and as what. Raises UsageError."""
    from penstock.pipeline.tables.interface import TableFormat
    from penstock.pipeline.tables.places import is_remote, state_name

    kind = _choice("--table-format", table_format, list(TableFormat))
    if catalog is not None and kind is not TableFormat.ICEBERG:
        raise UsageError("--catalog is about Iceberg tables: give --table-format iceberg too")
    found = {"table_format": kind, "catalog": catalog}
    if is_remote(table):
        return {"table": state or Path(state_name(table)), "store": table, **found}
    if state is not None:
        raise UsageError("--state is about tables in an object store: leave it out")
    return {"table": path_of(table), **found}


def _choice(flag: str, word: str, choices: list[Any]) -> Any:
    if word not in choices:
        raise UsageError(f"{flag} must be one of {', '.join(choices)}, not {word!r}")
    return choices[choices.index(word)]


def _run_and_show(config: PipelineConfig, output: Format, *, lines: bool) -> None:
    _show(_run(config, lines=lines), output, to_errors=lines)


def _run(config: PipelineConfig, *, lines: bool) -> Progress:
    from rich.console import Console

    from penstock.pipeline.jobs.job import PipelineError, Run
    from penstock.pipeline.session import SessionError, close_session
    from penstock.pipeline.tables.interface import TableError

    def show_batch(line: Mapping[str, Any]) -> None:
        try:
            print_json(line)
        except OutputClosed:  # The batch is written, and there is nobody to hear of further ones.
            run.stop()

    try:
        run = Run(config, show_batch) if lines else Run(config)
    except (PipelineError, TableError) as error:
        raise CommandError(str(error)) from error
    stop_on_signals(run)
    # Progress is for the person at the terminal, what a program reads is the result.
    with Console(stderr=True).status("Spark starts") as status:
        try:
            return run.run(lambda progress: status.update(_line(progress)))
        except (SessionError, PipelineError, TableError) as error:
            raise CommandError(str(error)) from error
        finally:
            close_session()


def _line(progress: Progress) -> str:
    parts = [f"{progress.rows:,} rows in {progress.batches} batches"]
    if progress.rows_per_second:
        parts.append(f"{progress.rows_per_second:,.0f} rows/s")
    if progress.behind is not None:
        parts.append(f"{progress.behind:,} behind")
    if progress.seconds_to_go:
        parts.append(f"{progress.seconds_to_go:,.0f} s to go")
    parts.extend(f"{count:,} not {name!r}" for name, count in progress.unmet.items())
    if progress.late:
        parts.append(f"{progress.late:,} too late")
    return ", ".join(parts)


def _show(progress: Progress, output: Format, *, to_errors: bool) -> None:
    text = f"{_line(progress)}, {progress.seconds:.1f} s"
    if output is Format.JSON:
        figures = {
            "rows": progress.rows,
            "batches": progress.batches,
            "seconds": round(progress.seconds, 1),
            "unmet": progress.unmet,
            "late": progress.late,
        }
        text = json.dumps(figures, ensure_ascii=False)
    if to_errors:
        typer.echo(text, err=True)
    else:
        print_line(text)
