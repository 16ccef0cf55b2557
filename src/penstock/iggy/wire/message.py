"""A message is a dataclass: its fields, in order, are its bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Self, TypeVar, cast, get_args, get_origin, get_type_hints

from penstock.iggy.wire.fields import Field, Reader, block
from penstock.limits import IGGY_ITEMS_AT_ONCE
from penstock.pace import Pace


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

    @property
    def is_long(self) -> bool:
        """Whether it has so many items that it is to be encoded in steps."""
        return any(
            field.item is not None and len(getattr(self, name)) > IGGY_ITEMS_AT_ONCE
            for name, field in _layout(type(self))
        )

    async def encode_in_steps(self) -> bytearray:
        """As `encode`, between the turns of others. The message is used up: its lists are empty."""
        pace = Pace()
        out = bytearray()
        for name, field in _layout(type(self)):
            value = getattr(self, name)
            if field.item is None:
                field.write(out, value)
                continue
            out += field.head(len(value))
            for item in value:
                field.item.write(out, item)
                if pace.is_over():
                    await pace.others()
            await pace.emptied(value)
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
