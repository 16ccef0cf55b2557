"""GET_CLIENTS: all connections of this protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_client
from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.GET_CLIENTS, requests.Empty)
async def get_clients(_request: requests.Empty, call: Call) -> replies.Clients:
    """Describe every client."""
    clients = [*call.client.server.clients.values()]
    described = await Pace().each(clients, lambda client: describe_client(call.broker, client))
    return replies.Clients(described)
