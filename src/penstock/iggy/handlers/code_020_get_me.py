"""GET_ME: the connection that asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_client_fully
from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.GET_ME, requests.Empty)
async def get_me(_request: requests.Empty, call: Call) -> replies.ClientDetails:
    """Describe the client and its groups."""
    return await describe_client_fully(call.broker, call.client)
