"""Writes the encoder of one version of a message, as Python source, and compiles it.

Fields of fixed size that follow each other are packed in one call, with the length of the field
after them. Record data is never copied: it becomes a part of its own between two others.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from struct import Struct as Packer
from typing import Any

from penstock.kafka.wire import primitives
from penstock.kafka.wire.decoding import element_of
from penstock.kafka.wire.layout import FIXED_CODES, NUMBER_CODES, Layout, SourceText, execute
from penstock.kafka.wire.schema import Field, StructType
from penstock.kafka.wire.structs import Struct, default_expression
from penstock.pace import Pace
from penstock.session import Buffer

Encoder = Callable[[Struct, bytearray, list[Buffer], int], None]
SteppingEncoder = Callable[[Struct, bytearray, list[Buffer], Pace], Coroutine[Any, Any, None]]


class ManyElementsError(Exception):
    """A message has so many elements that it is to be encoded in steps."""


def compile_encoder(
    root: StructType, layout: Layout, classes: dict[str, Any], *, in_steps: bool = False
) -> Any:
    """The encoder of one version.

    It takes the message, a bytearray to begin with (what is already in it goes first) and a list
    to which it appends the parts: that bytearray, and what record data forced behind it. It takes
    besides how many elements all arrays may have together; one more raises ManyElementsError. What
    goes `in_steps` has no such bound; it is a coroutine function, a SteppingEncoder.
    """
    writer = _EncoderWriter(layout, in_steps=in_steps)
    writer.write_root(root)
    namespace = {
        **classes,
        **writer.constants,
        "ManyElementsError": ManyElementsError,
        "Rows": primitives.Rows,
        "unsigned_varint": primitives.unsigned_varint,
    }
    execute(str(writer.text), f"encoder {root.name} v{layout.version}", namespace)
    return namespace["encode"]


class _EncoderWriter:
    def __init__(self, layout: Layout, *, in_steps: bool) -> None:
        head = "def encode(message, out, parts, elements_left):"
        if in_steps:
            head = "async def encode(message, out, parts, pace):"
        self.text = SourceText(head)
        self._in_steps = in_steps
        self.constants: dict[str, Any] = {}
        self._layout = layout
        self._values: list[str] = []
        self._codes = ""

    def write_root(self, root: StructType) -> None:
        self._write_struct(root, "message")
        self.text.line("parts.append(out)")

    def _pack_later(self, value: str, code: str) -> None:
        self._values.append(value)
        self._codes += code

    def _pack_now(self) -> None:
        if not self._values:
            if self._codes:
                self.text.line(f"out += {bytes(len(self._codes))!r}")
        else:
            self.text.line(f"out += {self._packed()}")
        self._values, self._codes = [], ""

    def _packed(self, extra_code: str = "", extra_value: str = "") -> str:
        """The call that packs what is waiting, and one value more."""
        codes = self._codes + extra_code
        values = [*self._values, extra_value] if extra_code else self._values
        function = f"pack_{codes.replace('?', 'bool')}"
        self.constants[function] = Packer(">" + codes).pack
        return f"{function}({', '.join(values)})"

    def _write_struct(self, struct: StructType, name: str) -> None:
        for field in self._layout.plain_fields(struct):
            self._write_field(field, f"{name}.{field.name}")
        if self._layout.flexible:
            tagged = self._layout.tagged_fields(struct)
            if tagged:
                self._write_tagged_fields(tagged, name)
            else:
                self._codes += "x"  # no tagged fields: a zero byte
        self._pack_now()

    def _write_field(self, field: Field, value: str) -> None:
        if field.is_array:
            self._write_array(field, value)
        elif field.struct is not None:
            self._write_struct_field(field, field.struct, value)
        elif field.type == "uuid":
            self._pack_later(f"{value}.bytes", FIXED_CODES["uuid"])
        elif field.type in NUMBER_CODES:
            self._pack_later(value, NUMBER_CODES[field.type])
        elif field.type == "records":
            self._write_records(field, value)
        else:
            self._write_bytes(field, value)

    def _write_struct_field(self, field: Field, struct: StructType, value: str) -> None:
        text = self.text
        self._pack_now()
        name = text.new_name("struct")
        text.line(f"{name} = {value}")
        if not self._layout.is_nullable(field):
            self._write_struct(struct, name)
            return
        text.line(f"if {name} is None:")
        text.line("    out += b'\\xff'")
        text.line("else:")
        text.indent()
        text.line("out += b'\\x01'")
        self._write_struct(struct, name)
        text.dedent()

    def _write_length(self, field: Field, length: str) -> None:
        """Pack what is waiting and the length before `field`, which -1 makes null."""
        code = self._layout.length_code(field)
        if code != "B":
            self._pack_later(length, code)
            self._pack_now()
            return
        long = f"unsigned_varint({length} + 1)"
        if self._codes:
            short = self._packed("B", f"{length} + 1")
            self.text.line(f"out += {short} if {length} < 127 else {self._packed()} + {long}")
        else:
            self.text.line(f"if {length} < 127:")
            self.text.line(f"    out.append({length} + 1)")
            self.text.line("else:")
            self.text.line(f"    out += {long}")
        self._values, self._codes = [], ""

    def _write_nullable(self, field: Field, name: str, length: str, measure: str) -> None:
        """Set `length` of the value `name`: that of nothing, with -1, where it is null."""
        text = self.text
        if self._layout.is_nullable(field):
            text.line(f"if {name} is None:")
            text.line(f"    {name}, {length} = b'', -1")
            text.line("else:")
            text.indent()
        for line in measure.splitlines():
            text.line(line)
        if self._layout.is_nullable(field):
            text.dedent()

    def _write_bytes(self, field: Field, value: str) -> None:
        text = self.text
        name, length = text.new_name("value"), text.new_name("length")
        text.line(f"{name} = {value}")
        measure = f"{length} = len({name})"
        if field.type == "string":
            measure = f"{name} = {name}.encode()\n{measure}"
        self._write_nullable(field, name, length, measure)
        self._write_length(field, length)
        text.line(f"out += {name}")

    def _write_records(self, field: Field, value: str) -> None:
        text = self.text
        name, length = text.new_name("records"), text.new_name("length")
        text.line(f"{name} = {value}")
        measure = (
            f"if not isinstance({name}, (list, tuple)):\n"
            f"    {name} = ({name},)\n"
            f"{length} = sum(map(len, {name}))"
        )
        self._write_nullable(field, name, length, measure)
        self._write_length(field, length)
        text.line(f"if {length} > 0:")
        text.line("    parts.append(out)")
        text.line(f"    parts += {name}")
        text.line("    out = bytearray()")

    def _write_array(self, field: Field, value: str) -> None:
        text = self.text
        items, count = text.new_name("items"), text.new_name("count")
        text.line(f"{items} = {value}")
        self._write_nullable(field, items, count, f"{count} = len({items})")
        self._write_length(field, count)
        if field.type in NUMBER_CODES:
            code = NUMBER_CODES[field.type]
            function = f"PACK_{code.replace('?', 'bool')}"
            self.constants[function] = primitives.ArrayStructs(code, "pack")
            text.line(f"if {count} > 0:")
            text.line(f"    out += {function}[{count}](*{items})")
            return
        if not self._in_steps:
            text.line(f"elements_left -= {count}")
            text.line("if elements_left < 0:")
            text.line("    raise ManyElementsError")
        may_be_rows = field.struct is not None and self._layout.may_be_rows(field.struct)
        if may_be_rows:
            text.line(f"if type({items}) is Rows:")
            text.line(f"    out += {items}.packed(tagged={self._layout.flexible})")
            text.line("else:")
            text.indent()
        self._write_elements(field, items)
        if may_be_rows:
            text.dedent()

    def _write_elements(self, field: Field, items: str) -> None:
        text = self.text
        item = text.new_name("item")
        text.line(f"for {item} in {items}:")
        text.indent()
        if field.struct is not None:
            self._write_struct(field.struct, item)
        else:
            self._write_field(element_of(field), item)
            self._pack_now()
        if self._in_steps:
            text.line("if pace.is_over():")
            text.line("    await pace.others()")
        text.dedent()

    def _write_tagged_fields(self, fields: list[Field], name: str) -> None:
        text = self.text
        self._pack_now()
        outer, tagged = text.new_name("outer"), text.new_name("tagged")
        count = text.new_name("count")
        differ = [_differs_from_default(field, f"{name}.{field.name}") for field in fields]
        text.line(f"if {' or '.join(differ)}:")
        text.indent()
        text.line(f"{outer}, {tagged}, {count} = out, b'', 0")
        for field in fields:
            value = f"{name}.{field.name}"
            text.line(f"if {_differs_from_default(field, value)}:")
            text.indent()
            text.line("out = bytearray()")
            self._write_field(field, value)
            self._pack_now()
            tag = primitives.encode_unsigned_varint(field.tag or 0)
            text.line(f"{tagged} += {tag!r} + unsigned_varint(len(out)) + out")
            text.line(f"{count} += 1")
            text.dedent()
        text.line(f"out = {outer}")
        text.line(f"out += unsigned_varint({count}) + {tagged}")
        text.dedent()
        text.line("else:")
        text.line("    out.append(0)")


def _differs_from_default(field: Field, value: str) -> str:
    """The condition under which a tagged field is written at all."""
    default = default_expression(field)
    if default == "[]":
        return f"{value} is None or len({value})"
    if default in ("None", "True", "False"):
        return f"{value} is not {default}"
    if field.struct is not None or field.type == "uuid":
        # Equality of these is a call; the shared default itself is what comes nearly always.
        return f"{value} is not {default} and {value} != {default}"
    return f"{value} != {default}"
