"""Which function answers which command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from penstock.iggy.server import Call
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.message import Message
from penstock.iggy.wire.replies import Reply
from penstock.requests.registry import Registry
from penstock.session import Answer

RequestT = TypeVar("RequestT", bound=Message)
Handle: TypeAlias = Callable[[RequestT, Call], Answer[Reply]]


class Handler(NamedTuple):
    """One command's request, and the function that answers it.

    The function raises IggyError or another one of `penstock.iggy.errors`.
    """

    request: type[Message]
    handle: Handle[Any]
    without_login: bool


HANDLERS: Final[Registry[Command, Handler]] = Registry()


def handles(
    command: Command, request: type[RequestT], *, without_login: bool = False
) -> Callable[[Handle[RequestT]], Handle[RequestT]]:
    """Make a function the one that answers `command`."""
    return HANDLERS.register(command, lambda handle: Handler(request, handle, without_login))
