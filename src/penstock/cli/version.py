"""`penstock version`."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock import __version__
from penstock.cli.output import Format, FormatOption, print_json


def version_command(output: Annotated[Format, FormatOption] = Format.TABLE) -> None:
    """Print the versions of Penstock, Python and the platform."""
    import platform

    versions = {
        "penstock": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    if output is Format.JSON:
        print_json(versions)
        return
    for name, value in versions.items():
        typer.echo(f"{name:9} {value}")
