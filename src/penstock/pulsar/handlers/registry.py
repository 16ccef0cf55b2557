"""Which function answers which command, and which one makes its refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from penstock.pulsar.client import Call
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, ServerError
from penstock.requests.registry import Registry
from penstock.session import Answer

Reply: TypeAlias = BaseCommand | None
Handle: TypeAlias = Callable[[Any, Call], Answer[Reply]]
"""The request is the part of BaseCommand that the command's kind names."""
Refuse: TypeAlias = Callable[[Any, ServerError.ValueType, str], BaseCommand]


class Handler(NamedTuple):
    """How one command is carried out.

    `field` is the part of BaseCommand that holds the request. `refuse` makes an answer from the
    request, an error code and a message: every request type has its own form of it, and two
    requests of different types may have the same id. Without it the client hears of no error.
    """

    field: str
    handle: Handle
    refuse: Refuse | None


HANDLERS: Final[Registry[BaseCommand.Type.ValueType, Handler]] = Registry()


def handles(
    kind: BaseCommand.Type.ValueType, *, refuse: Refuse | None = None
) -> Callable[[Handle], Handle]:
    """Make a function the one that answers commands of a kind."""
    # The protocol numbers a command's field as it numbers its kind.
    field = BaseCommand.DESCRIPTOR.fields_by_number[kind].name
    return HANDLERS.register(kind, lambda handle: Handler(field, handle, refuse))
