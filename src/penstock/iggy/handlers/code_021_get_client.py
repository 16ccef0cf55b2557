"""GET_CLIENT: one connection, by its number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_client_fully
from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.GET_CLIENT, requests.GetClient)
async def get_client(request: requests.GetClient, call: Call) -> replies.ClientDetails | None:
    """Describe a client and its groups; nothing when it is not connected."""
    client = call.client.server.clients.get(request.client_id)
    return None if client is None else await describe_client_fully(call.broker, client)
