"""Which function answers which command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.iggy.node import Client, Node
    from penstock.iggy.wire.commands import Command
    from penstock.iggy.wire.message import Message
    from penstock.session import Buffers

    Answer: TypeAlias = Message | Buffers | None

RequestT = TypeVar("RequestT", bound="Message")


class Context(NamedTuple):
    """What a handler works with besides its request."""

    node: Node
    client: Client

    @property
    def broker(self) -> Broker:
        return self.node.broker


class Handler(NamedTuple):
    """One command's body and the function that answers it.

    The function returns a reply, parts of one, or None for an empty one, and raises IggyError or
    another of `penstock.iggy.errors.ANSWERED`. What waits for one future only is best a Deferred.
    """

    request: type[Message]
    answer: Callable[[Context, Any], Awaitable[Answer]]
    without_login: bool


HANDLERS: Final[dict[Command, Handler]] = {}


def handles(
    command: Command, request: type[RequestT], *, without_login: bool = False
) -> Callable[
    [Callable[[Context, RequestT], Awaitable[Answer]]],
    Callable[[Context, RequestT], Awaitable[Answer]],
]:
    """Make a function the one that answers `command`."""

    def register(
        answer: Callable[[Context, RequestT], Awaitable[Answer]],
    ) -> Callable[[Context, RequestT], Awaitable[Answer]]:
        assert command not in HANDLERS, command
        HANDLERS[command] = Handler(request, answer, without_login)
        return answer

    return register
