"""GET_USERS: there is one, the root user that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_root
from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.handlers.registry import Context


@handles(Command.GET_USERS, requests.Empty)
async def get_users(context: Context, _request: requests.Empty) -> replies.Users:
    """Describe the root user."""
    return replies.Users([describe_root(context.broker, context.node.started_at_us)])
