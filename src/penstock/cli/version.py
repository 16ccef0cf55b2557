"""`penstock version` and `penstock --version`."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.output import Format, FormatOption, print_json


def print_version(wanted: bool) -> None:
    """Print the version alone, as `--version` does, and end."""
    if wanted:
        from importlib.metadata import version

        typer.echo(f"penstock {version('penstock-broker')}")
        raise typer.Exit


def version_command(output: Annotated[Format, FormatOption] = Format.TABLE) -> None:
    """Print the versions of Penstock, Python and the platform."""
    import platform
    from importlib.metadata import version

    versions = {
        "penstock": version("penstock-broker"),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    if output is Format.JSON:
        print_json(versions)
        return
    for name, value in versions.items():
        typer.echo(f"{name:9} {value}")
