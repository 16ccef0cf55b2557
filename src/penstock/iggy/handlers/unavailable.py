"""Commands that apache-iggy 0.9.0 knows and this release does not carry out, and why.

They are answered with the protocol's 'feature unavailable', never with a success that is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.iggy.handlers.registry import handles
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.requests import Anything

if TYPE_CHECKING:
    from penstock.iggy.server import Call

UNAVAILABLE: Final = {
    Command.ATTACH_CONSUMER_SESSION: "asked only in a cluster of several nodes",
    Command.GET_POLL_ROUTING: "asked only in a cluster of several nodes",
    Command.POLL_MESSAGES_ON_PRIMARY: "asked only in a cluster of several nodes",
    Command.GET_CONSUMER_OFFSET_ROUTING: "asked only in a cluster of several nodes",
    Command.CREATE_USER: "the root user of the settings is the only one",
    Command.UPDATE_USER: "the root user of the settings is the only one",
    Command.DELETE_USER: "the root user of the settings is the only one",
    Command.CHANGE_PASSWORD: "the password is a setting",
    Command.UPDATE_PERMISSIONS: "the root user may do everything",
    Command.CREATE_PERSONAL_ACCESS_TOKEN: "the root user logs in with a password",
    Command.DELETE_PERSONAL_ACCESS_TOKEN: "the root user logs in with a password",
}


def refuse(_request: Anything, _call: Call) -> None:
    """Answer 'feature unavailable'."""
    raise IggyError(ErrorCode.FEATURE_UNAVAILABLE)


for _command in UNAVAILABLE:
    handles(_command, Anything)(refuse)
