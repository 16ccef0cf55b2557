"""What an older dialect is: which commands it has, and how requests and replies lie in its bytes.

What handlers take and give is declared in `requests` and `replies`, in today's bytes. An older
dialect declares beside its codec what lies elsewhere: a message with fields of the same names, or
one that says itself which request it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from penstock.iggy.wire.fields import Reader
from penstock.iggy.wire.message import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.iggy.wire.batch import MessageForm
    from penstock.iggy.wire.commands import Command
    from penstock.iggy.wire.errors import ErrorCode
    from penstock.iggy.wire.message import MessageT


class StandsForRequest(Protocol):
    """A message in the bytes of a dialect, for a request that has other fields."""

    def request(self) -> Message:
        """Return what a handler takes."""


LayoutT = TypeVar("LayoutT", bound=Message)


@dataclass(frozen=True, eq=False)
class OlderDialect:
    """One dialect, or one version of it."""

    name: str
    commands: Mapping[int, Command]
    """What each code asks for."""
    requests: Mapping[type[Message], type[Message]]
    """How a kind of request lies in bytes, where that is not as today."""
    replies: Mapping[type[Message], type[Message]]
    """How a kind of reply does."""
    form: MessageForm
    needs_login: bool = True
    numbers: Mapping[ErrorCode, int] = field(default_factory=dict)
    """The numbers of errors that had another one, or none."""
    answered_with_nothing: frozenset[Command] = frozenset()
    """Commands whose success has nothing more to say."""
    looked_up: frozenset[Command] = frozenset()
    """Commands to which nothing is the answer where there is nothing."""
    hangs_up: bool = False
    """Whether what makes no sense ends the connection, without an answer."""

    def layout(self, kind: type[Message]) -> type[Message]:
        """Return how this kind of request lies in bytes."""
        return self.requests.get(kind, kind)

    def number(self, code: ErrorCode) -> int:
        """Return what an error is called."""
        return self.numbers.get(code, int(code))


def read_request(kind: type[MessageT], layout: type[Message], reader: Reader) -> MessageT:
    """Read a request that lies in these bytes; raises IggyError."""
    message = layout.read(reader)
    if layout is kind:
        return cast("MessageT", message)
    # To ask a protocol whether this is one takes longer than all the rest.
    if hasattr(layout, "request"):
        return cast("MessageT", cast("StandsForRequest", message).request())
    return kind(**vars(message))
