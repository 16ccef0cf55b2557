"""`penstock pipeline init` and `check`: a pipeline as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.client import DEFAULT_SERVER, Server
from penstock.cli.failure import CommandError, UsageError
from penstock.cli.output import counted

if TYPE_CHECKING:
    from penstock.pipeline.jobs.config import PipelineConfig

Definition = Annotated[Path, typer.Argument(help="The pipeline's file.", show_default=False)]


def is_definition(place: Path) -> bool:
    """Whether a pipeline's file is named, and not a topic or a folder."""
    return place.suffix == ".toml"


def loaded(file: Path) -> PipelineConfig:
    """Return what a file defines; raises UsageError and CommandError."""
    try:
        from penstock.pipeline.jobs.config import DefinitionError
        from penstock.pipeline.jobs.definition import load
    except ModuleNotFoundError as error:
        raise CommandError(f"{error}: pip install 'penstock-broker[spark]'") from error
    try:
        return load(file)
    except DefinitionError as error:
        raise UsageError(str(error)) from error


def init_command(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("pipeline.toml"),
    topic: Annotated[str, typer.Option(help="The topic that it reads.")] = "orders",
    table: Annotated[str, typer.Option(help="The folder of its table.")] = "",
    server: Server = DEFAULT_SERVER,
) -> None:
    """Write a pipeline's file to begin with: it runs as it is, and shows what else can be set."""
    from penstock.pipeline.jobs.template import TEMPLATE

    if not is_definition(file):
        raise UsageError(f"a pipeline's file ends in .toml, and {file} does not")
    names = {"topic": topic, "server": server, "table": table or f"{topic}-table", "file": file}
    try:
        with file.open("x") as new:
            new.write(TEMPLATE.format(**names))
    except FileExistsError:
        raise CommandError(f"{file} exists: remove it, or choose another name") from None
    except OSError as error:
        raise CommandError(f"{file} can't be written: {error.strerror}") from error
    typer.echo(f"{file} is written; 'penstock pipeline check {file}' looks at it")


def check_command(file: Definition) -> None:
    """Look whether a pipeline could run: its file, the table and the checkpoint of one that has
    begun, the broker and its topics, and, where it has conditions or a schema, these on the columns
    that they are about.

    Nothing is written.
    """
    from penstock.pipeline.jobs.checks import CheckError, look, look_at_steps, look_at_table
    from penstock.pipeline.session import SessionError, close_session

    config = loaded(file)
    try:
        newest = look_at_table(config)
        found = look(config, None if newest is None else newest.end)
        typer.echo(f"{', '.join(config.topics)}: {counted(found.partitions, 'partition')}")
        begun = "a new table would begin with" if newest is None else "a run would go on with"
        typer.echo(f"{begun} {found.rows:,} rows")
        columns = look_at_steps(config)
    except (CheckError, SessionError) as error:
        raise CommandError(str(error)) from error
    finally:
        close_session()
    for name, kind in columns:
        typer.echo(f"  {name} {kind}")
    typer.echo(f"{file} can run: penstock pipeline run {file}")
