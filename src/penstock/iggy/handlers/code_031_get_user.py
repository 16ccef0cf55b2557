"""GET_USER: there is one, the root user that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import ROOT_USER_ID, describe_root_fully
from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.handlers.registry import Context


@handles(Command.GET_USER, requests.UserRequest)
async def get_user(context: Context, request: requests.UserRequest) -> replies.UserDetails | None:
    """Describe the root user; nothing for any other one."""
    if request.user.value not in {ROOT_USER_ID, context.broker.settings.iggy_user}:
        return None
    return describe_root_fully(context.broker, context.node.started_at_us)
