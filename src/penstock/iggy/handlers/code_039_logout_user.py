"""LOGOUT_USER: end the session; the connection stays and may log in again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.handlers.registry import Context


@handles(Command.LOGOUT_USER, requests.Empty)
async def logout_user(context: Context, _request: requests.Empty) -> None:
    """Forget the session and leave its groups."""
    context.node.log_out(context.client)
