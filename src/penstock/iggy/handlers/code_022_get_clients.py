"""GET_CLIENTS: all connections of this protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_client
from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.handlers.registry import Context


@handles(Command.GET_CLIENTS, requests.Empty)
async def get_clients(context: Context, _request: requests.Empty) -> replies.Clients:
    """Describe every client."""
    clients = context.node.clients.values()
    return replies.Clients([describe_client(context.broker, client) for client in clients])
