"""GET_CLIENT: one connection, by its number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_client_fully
from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.GET_CLIENT, requests.GetClient)
async def get_client(request: requests.GetClient, call: Call) -> replies.ClientDetails:
    """Describe a client that is connected, and its groups."""
    client = call.client.server.clients.get(request.client_id)
    if client is None:
        raise IggyError(ErrorCode.CLIENT_NOT_FOUND, str(request.client_id))
    return await describe_client_fully(call.broker, client)
