"""Options by which a pipeline reaches its servers, as source and sink know them.

`$NAME` in a value is the environment's: a file that others read is no place for a password.
"""

from __future__ import annotations

import os
from string import Template
from typing import TYPE_CHECKING, Final

from penstock.pipeline.clusters import address, sasl_options
from penstock.pipeline.jobs.config import Access, DefinitionError
from penstock.pipeline.sink.options import PULSAR_TIMEOUT, TIMEOUT

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.pipeline.jobs.sections import Section

READING: Final = (*address.NAMES, *sasl_options.UNDERSTOOD)
WRITING: Final = (*READING, TIMEOUT, PULSAR_TIMEOUT)


def access_of(section: Section, folder: Path) -> Access:
    """Return what a section of a pipeline's file says. Raises DefinitionError."""
    found = {name: section.text(name) for name in section}
    if address.CA_FILE in found:
        found[address.CA_FILE] = str(folder / found[address.CA_FILE])
    return tuple(found.items())


def options_of(access: Access) -> dict[str, str]:
    """Return the options with what the environment says. Raises DefinitionError."""
    return {name: _resolved(name, value) for name, value in access}


def _resolved(name: str, value: str) -> str:
    if name == address.CA_FILE:
        return value
    try:
        return Template(value).substitute(os.environ)
    except KeyError as error:
        raise DefinitionError(
            f"{name} is to be {error.args[0]} of the environment, where there is no such variable"
        ) from None
    except ValueError:
        # What it says may be secret.
        raise DefinitionError(
            f"{name} has a $ with no name of a variable behind it: write $$ for the letter itself"
        ) from None
