"""`penstock audit`: judge every byte of a data folder, in parallel."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from penstock.cli.failure import EXIT_FAILED, CommandError
from penstock.cli.output import Format, FormatOption, print_json, print_rows
from penstock.cli.paths import path_of

if TYPE_CHECKING:
    from penstock.pipeline.logs.audit import LogAudit

_COLUMNS: Final = ["topic", "partition", "start", "end", "records", "segments", "size", "wrong"]


def audit_command(
    data_folder: Annotated[
        Path,
        typer.Option(
            "--data-folder",
            parser=path_of,
            metavar="FOLDER",
            help="Folder of all data of a broker.",
        ),
    ] = Path("penstock-data"),
    master: Annotated[str, typer.Option(help="Spark's master URL.")] = "local[*]",
    output: Annotated[Format, FormatOption] = Format.TABLE,
) -> None:
    """Check every byte of all logs of a data folder, in parallel on Spark.

    That is: checksums, the order of offsets and of producers' sequence numbers, and the ends of
    transactions. Nothing is changed, and the broker may run meanwhile. 'wrong' counts what is lost
    or doubled, and each is said below; 'penstock recover' says what to do. A transaction without an
    end is open, or its end is still to be written. The exit code is 1 where something is wrong.
    """
    logs = _audited(data_folder, master)
    if output is Format.JSON:
        print_json([asdict(log) for log in logs])
    else:
        rows = [asdict(log) | {"wrong": len(log.damage)} for log in logs]
        print_rows(rows, _COLUMNS, output, empty="There is no log here.")
        for log in logs:
            _say(log)
    if not all(log.is_sound for log in logs):
        raise typer.Exit(EXIT_FAILED)


def _audited(data_folder: Path, master: str) -> list[LogAudit]:
    try:
        from penstock.pipeline.logs.audit import AuditError, audit, segments_of
        from penstock.pipeline.session import SessionError, close_session, open_session
    except ModuleNotFoundError as error:
        raise CommandError(f"{error}: pip install 'penstock-broker[spark]'") from error
    from rich.console import Console

    try:
        size = sum(each.size for each in segments_of(data_folder))
        with Console(stderr=True).status(f"{size / 1e6:,.0f} MB are checked"):
            return audit(open_session("penstock audit", master, Path(os.devnull)), data_folder)
    except (AuditError, SessionError) as error:
        raise CommandError(str(error)) from error
    finally:
        close_session()


def _say(log: LogAudit) -> None:
    name = f"{log.topic}-{log.partition}"
    for damage in log.damage:
        typer.echo(f"{name}: {damage}")
    for producer, offset in sorted(log.open.items(), key=lambda each: each[1]):
        typer.echo(f"{name}: a transaction of producer {producer} is open from offset {offset} on")
    if log.torn_bytes:
        typer.echo(f"{name}: {log.torn_bytes} bytes at its end are no whole batch")
