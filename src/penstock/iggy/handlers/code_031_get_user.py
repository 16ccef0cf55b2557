"""GET_USER: there is one, the root user that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.descriptions import ROOT_USER_ID, describe_root_fully
from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command

if TYPE_CHECKING:
    from penstock.iggy.server import Call


@handles(Command.GET_USER, requests.UserRequest)
def get_user(request: requests.UserRequest, call: Call) -> replies.UserDetails | None:
    """Describe the root user; nothing for any other one."""
    if request.user.value not in {ROOT_USER_ID, call.broker.settings.iggy_user}:
        return None
    return describe_root_fully(call.broker, call.client.server.started_at_us)
