"""GET_ME: the connection that asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_client_fully
from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.handlers.registry import Context


@handles(Command.GET_ME, requests.Empty)
async def get_me(context: Context, _request: requests.Empty) -> replies.ClientDetails:
    """Describe the client and its groups."""
    return describe_client_fully(context.broker, context.client)
