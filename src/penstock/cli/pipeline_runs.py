"""`penstock pipeline status` and `stop`: a run that is going on somewhere else, by its files."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from penstock import wall_clock
from penstock.cli.failure import CommandError
from penstock.cli.output import Format, FormatOption, print_json

if TYPE_CHECKING:
    from penstock.pipeline.jobs.state import JobState, Status

_LOOK_SECONDS: Final = 0.2
_SILENT_MS: Final = 30_000
"""A run writes its status each second, but for a broker or a disk that keeps it waiting."""

Place = Annotated[
    Path, typer.Argument(help="The pipeline's file, or its table's folder.", show_default=False)
]


def status_command(place: Place, output: Annotated[Format, FormatOption] = Format.TABLE) -> None:
    """Show what a pipeline's run is doing, or how the newest one ended.

    The figures are those of the file status.json in the folder _penstock of the table, which a run
    replaces once a second; batches.jsonl beside it has a line for each batch.
    """
    _, status = _found(place)
    if output is Format.JSON:
        print_json(asdict(status))
        return
    typer.echo(f"{status.target}: {status.phase}, {_figures(status)}")
    age = (wall_clock.now_ms() - status.updated_ms) // 1000
    if not status.phase.is_over and age * 1000 > _SILENT_MS:
        typer.echo(f"nothing was heard of it for {age} s; it runs on {status.host} as {status.pid}")
    for what in (status.warning, status.error):
        if what:
            typer.echo(what)


def stop_command(
    place: Place,
    wait: Annotated[
        float, typer.Option(help="Seconds to wait for its end; 0 only asks for it.", min=0)
    ] = 60,
) -> None:
    """Have a running pipeline finish its batch and end."""
    state, status = _found(place)
    if status.phase.is_over:
        raise CommandError(f"no pipeline runs for {status.target}: the newest run {status.phase}")
    state.ask_to_stop()
    deadline = time.monotonic() + wait
    while time.monotonic() < deadline:
        _, status = _found(place)
        if status.phase.is_over:
            typer.echo(f"{status.target}: {status.phase}, {_figures(status)}")
            return
        time.sleep(_LOOK_SECONDS)
    if wait:
        raise CommandError(
            f"{status.target} is still {status.phase} after {wait:g} s: it was asked to end"
        )


def _found(place: Path) -> tuple[JobState, Status]:
    state = _state(place)
    try:
        status = state.read()
    except ValueError as error:
        raise CommandError(str(error)) from error
    if status is None:
        raise CommandError(f"no run of {place} has left its status in {state.folder}")
    return state, status


def _state(place: Path) -> JobState:
    from penstock.cli.pipeline_files import is_definition, loaded
    from penstock.pipeline.jobs.state import JobState
    from penstock.pipeline.tables.interface import state_folder

    return JobState(state_folder(loaded(place).table if is_definition(place) else place))


def _figures(status: Status) -> str:
    behind = "" if status.behind is None else f", {status.behind:,} behind"
    return f"{status.rows:,} rows in {status.batches} batches{behind}"
