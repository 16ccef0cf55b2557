"""Files and folders as a person names them."""

from __future__ import annotations

from pathlib import Path

import typer


def path_of(text: str) -> Path:
    """Return the path of an argument. An empty one, as of a variable of the shell that is not set,
    would be the working directory: raises BadParameter.
    """
    if not text:
        raise typer.BadParameter("it is empty; '.' is the working directory")
    return Path(text)
