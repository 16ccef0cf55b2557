"""Which broker a command speaks to: --server, --context, PENSTOCK_SERVER, the current context."""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

from penstock.cli.context_file import Contexts, load_contexts
from penstock.cli.failure import UsageError

DEFAULT_SERVER: Final = "127.0.0.1:9092"
SERVER_VARIABLE: Final = "PENSTOCK_SERVER"

_ADDRESS: Final = re.compile(r"(?:\[[0-9A-Fa-f:.%\w]+\]|[^\s:,\[\]]+):(\d{1,5})", re.ASCII)


class Choice(NamedTuple):
    """An address, and what named it."""

    address: str
    origin: str


def choose_server(flag: str | None, context: str | None) -> Choice:
    """Return the first that is given: flags, the environment, the context in use, the default.

    Raises UsageError for a context that is not there and for what is no address.
    """
    if flag is not None:
        return Choice(checked_address(flag, "--server"), "--server")
    if context is not None:
        return _of_context(load_contexts(), context)
    if variable := os.environ.get(SERVER_VARIABLE):
        return Choice(checked_address(variable, SERVER_VARIABLE), SERVER_VARIABLE)
    contexts = load_contexts()
    if contexts.current is not None:
        return _of_context(contexts, contexts.current)
    return Choice(DEFAULT_SERVER, "default")


def _of_context(contexts: Contexts, name: str) -> Choice:
    origin = f"context {name}"
    return Choice(checked_address(contexts.server(name), origin), origin)


def checked_address(text: str, place: str) -> str:
    """Return one `host:port`, or several with commas, as they are. Raises UsageError."""
    for address in text.split(","):
        found = _ADDRESS.fullmatch(address.strip())
        if found is None or not 0 < int(found[1]) <= 65535:
            raise UsageError(
                f'{place}: "{text}" is refused; what is needed is HOST:PORT, as {DEFAULT_SERVER}'
            )
    return text
