"""GET_USERS: there is one, the root user that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import describe_root
from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.GET_USERS, requests.Empty)
def get_users(_request: requests.Empty, call: Call) -> replies.Users:
    """Describe the root user."""
    return replies.Users([describe_root(call.broker, call.client.server.started_at_us)])
