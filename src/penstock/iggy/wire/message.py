"""A message is declared as a dataclass is: its fields, in order, are its bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import (
    Annotated,
    Any,
    ClassVar,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from penstock.iggy.wire.fields import Field, Reader, block
from penstock.limits import IGGY_ITEMS_AT_ONCE
from penstock.pace import Pace


@dataclass_transform(frozen_default=True)
class Message:
    """Base of every request and reply, and of the blocks that they are made of.

    To type checkers each is a frozen dataclass. A real one takes a millisecond to make, a broker's
    start pays it for every kind, and most kinds are never sent: what makes one is compiled with the
    first of its kind.
    """

    field_names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.field_names = tuple(cls.__annotations__)
        cls.__init__ = Message.__init__  # type: ignore[method-assign]  # not that of another kind

    def __init__(self, *values: Any, **named: Any) -> None:
        kind = type(self)
        kind.__init__ = _initializer(kind)  # type: ignore[method-assign]
        kind.__init__(self, *values, **named)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    __hash__ = None  # type: ignore[assignment]  # lists in it can be changed

    def __repr__(self) -> str:
        named = zip(self.field_names, self._values(), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in named)})"

    def _values(self) -> list[Any]:
        return [getattr(self, name) for name in self.field_names]

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read the fields one after another; raises IggyError."""
        return cast("Callable[..., Self]", cls)(*cls.read_fields(reader))

    @classmethod
    def read_fields(cls, reader: Reader, before: str | None = None) -> list[Any]:
        """Read the values of all fields, or of those before one; raises IggyError."""
        end = None if before is None else cls.field_names.index(before)
        return [field.read(reader) for _, field in _layout(cls)[:end]]

    def write(self, out: bytearray) -> None:
        """Append the fields one after another."""
        type(self).write_from(self, out)

    @classmethod
    def write_from(cls, message: object, out: bytearray) -> None:
        """Append what has fields of these names, in the bytes of this kind of message."""
        for name, field in _layout(cls):
            field.write(out, getattr(message, name))

    @classmethod
    def decode(cls, body: bytes | bytearray | memoryview) -> Self:
        """Read the message that a body begins with; raises IggyError.

        What follows it is ignored, as in apache-iggy's `WireDecode::decode_from`: a client may send
        fields that a command has no use for. Only what fills the rest of a body, as options and a
        batch do, has to fill it exactly.
        """
        if not _layout(cls):
            return cls()  # A ping, for one, of which many come.
        return cls.read(Reader(body))

    def encode(self) -> bytearray:
        """Return this message's bytes."""
        out = bytearray()
        self.write(out)
        return out

    @classmethod
    def is_long(cls, message: object) -> bool:
        """Whether it has so many items that it is to be encoded in steps."""
        return any(
            field.item is not None and len(getattr(message, name)) > IGGY_ITEMS_AT_ONCE
            for name, field in _layout(cls)
        )

    @classmethod
    async def encode_in_steps(cls, message: object) -> bytearray:
        """Return the bytes, between the turns of others. The message is used up."""
        pace = Pace()
        out = bytearray()
        for name, field in _layout(cls):
            value = getattr(message, name)
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


def _initializer(kind: type[Message]) -> Callable[..., None]:
    """Return an `__init__` that takes the fields in their order or by name, as a dataclass has."""
    declared = [vars(each) for each in kind.__mro__ if each not in (Message, object)]
    parameters = ["self"]
    for name in kind.field_names:
        has_default = any(name in attributes for attributes in declared)
        parameters.append(f"{name}=kind.{name}" if has_default else name)
    lines = [f"self.{name} = {name}" for name in kind.field_names] or ["pass"]
    made: dict[str, Any] = {"kind": kind}
    exec(f"def __init__({', '.join(parameters)}):\n    " + "\n    ".join(lines), made)  # noqa: S102
    return cast("Callable[..., None]", made["__init__"])


_layouts: dict[type[Message], list[tuple[str, Field]]] = {}


def _layout(kind: type[Message]) -> list[tuple[str, Field]]:
    layout = _layouts.get(kind)
    if layout is None:
        hints = get_type_hints(kind, include_extras=True)
        layout = _layouts[kind] = [(name, _field(hints[name])) for name in kind.field_names]
    return layout


def _field(hint: Any) -> Field:
    if get_origin(hint) is Annotated:
        field = get_args(hint)[-1]
        assert isinstance(field, Field)
        return field
    return laid_out(hint) if issubclass(hint, Message) else block(hint)


def laid_out(kind: type[Message]) -> Field:
    """The field of a message, in the bytes of this kind of it."""
    return Field(kind.read, lambda out, value: kind.write_from(value, out))
