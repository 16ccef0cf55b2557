"""A message is a dataclass: its fields, in order, are its bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Self, TypeVar, cast, get_args, get_origin, get_type_hints

from penstock.iggy.wire.fields import Field, Reader, block


class Message:
    """Base of every request and reply, and of the blocks that they are made of."""

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read the fields one after another; raises IggyError."""
        values = [field.read(reader) for _, field in _layout(cls)]
        return cast("Callable[..., Self]", cls)(*values)

    def write(self, out: bytearray) -> None:
        """Append the fields one after another."""
        for name, field in _layout(type(self)):
            field.write(out, getattr(self, name))

    @classmethod
    def decode(cls, body: bytes | bytearray | memoryview) -> Self:
        """Read a body that holds this message and nothing more; raises IggyError."""
        if not body and not _layout(cls):
            return cls()  # A ping, for one, of which many come.
        reader = Reader(body)
        message = cls.read(reader)
        reader.finish()
        return message

    def encode(self) -> bytearray:
        """Return this message's bytes."""
        out = bytearray()
        self.write(out)
        return out


MessageT = TypeVar("MessageT", bound=Message)

_layouts: dict[type[Message], list[tuple[str, Field]]] = {}


def _layout(kind: type[Message]) -> list[tuple[str, Field]]:
    layout = _layouts.get(kind)
    if layout is None:
        hints = get_type_hints(kind, include_extras=True)
        layout = _layouts[kind] = [(name, _field(hint)) for name, hint in hints.items()]
    return layout


def _field(hint: Any) -> Field:
    if get_origin(hint) is Annotated:
        field = get_args(hint)[-1]
        assert isinstance(field, Field)
        return field
    return block(hint)
