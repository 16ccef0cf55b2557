"""PING: is the server there; asked before login too, and every five seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.PING, requests.Empty, without_login=True)
def ping(_request: requests.Empty, _call: Call) -> None:
    """Answer with nothing, which says enough."""
