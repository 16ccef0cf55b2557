"""`penstock recover`: say what is wrong with a stopped broker's data folder, and put it right."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.failure import CommandError
from penstock.cli.output import Format, FormatOption, print_json, print_rows
from penstock.cli.paths import path_of

if TYPE_CHECKING:
    from penstock.server.inspection import Finding


def recover_command(
    data_folder: Annotated[
        Path,
        typer.Option(
            "--data-folder",
            parser=path_of,
            metavar="FOLDER",
            help="Folder of all data of a broker that is stopped.",
        ),
    ] = Path("penstock-data"),
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild",
            help="Bring back into the database, made anew where it is missing, what the folders "
            "have and it does not: topics, partitions, their ids and the count of starts.",
        ),
    ] = False,
    accept_loss: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-loss",
            metavar="TOPIC-PARTITION",
            help="Let this log go on without what is missing of it; may be repeated.",
        ),
    ] = None,
    output: Annotated[Format, FormatOption] = Format.TABLE,
) -> None:
    """Show what is missing or does not belong together, and which option ends it.

    Without an option nothing is changed. The exit code is 1 as long as something is wrong.
    """
    done, findings = _recover(data_folder, rebuild, accept_loss or [])
    rows = [
        {
            "problem": finding.problem.value,
            "about": finding.about,
            "detail": finding.detail,
            "remedy": finding.remedy,
        }
        for finding in findings
    ]
    if output is Format.JSON:
        print_json({"done": done, "findings": rows})
    else:
        for line in done:
            typer.echo(line)
        print_rows(
            rows, ["problem", "about", "detail", "remedy"], output, empty="Nothing is wrong."
        )
    if findings:
        raise typer.Exit(1)


def _recover(
    data_folder: Path, rebuild: bool, accepted: list[str]
) -> tuple[list[str], list[Finding]]:
    from penstock.broker.errors import DataFolderError
    from penstock.metadata.errors import MetadataError
    from penstock.server import recovery
    from penstock.server.data_folder import DataFolderLock, is_data_folder

    # Before it is locked: that leaves a file in it.
    if not is_data_folder(data_folder):
        raise CommandError(f"there is no data folder {data_folder}; --data-folder says where it is")
    try:
        with DataFolderLock(data_folder):
            done = asyncio.run(recovery.rebuild(data_folder)) if rebuild else []
            if accepted:
                done += asyncio.run(recovery.accept_loss(data_folder, accepted))
            return done, recovery.examine(data_folder)
    except (DataFolderError, MetadataError) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"the data folder {data_folder} failed: {error}") from error
