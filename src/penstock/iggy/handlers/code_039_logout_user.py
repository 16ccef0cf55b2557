"""LOGOUT_USER: end the session; the connection stays and may log in again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.LOGOUT_USER, requests.Empty)
def logout_user(_request: requests.Empty, call: Call) -> None:
    """Forget the session and leave its groups."""
    call.client.server.log_out(call.client)
