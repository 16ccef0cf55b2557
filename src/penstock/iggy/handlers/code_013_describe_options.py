"""DESCRIBE_OPTIONS: which options a kind of resource knows. Streams and users know none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.iggy.handlers.registry import handles
from penstock.iggy.topic_options import OPTIONS
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError

if TYPE_CHECKING:
    from penstock.iggy.handlers.registry import Context


_TOPIC: Final = 1
_SCOPES: Final = range(1, 4)


@handles(Command.DESCRIBE_OPTIONS, requests.DescribeOptions)
async def describe_options(
    context: Context, request: requests.DescribeOptions
) -> replies.OptionDescriptions:
    """List a topic's options with their kinds and defaults."""
    if request.scope not in _SCOPES:
        raise IggyError(ErrorCode.INVALID_COMMAND, f"scope {request.scope}")
    node = context.broker.settings
    known = OPTIONS if request.scope == _TOPIC else {}
    return replies.OptionDescriptions(
        [
            replies.OptionDescription(
                name, option.kind, option.encode(option.default(node)).data, option.description
            )
            for name, option in known.items()
        ]
    )
