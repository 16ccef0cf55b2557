"""Writes the decoder of one version of a message, as Python source, and compiles it.

Fields of fixed size that follow each other are unpacked in one call, with the length of the field
after them. Every length and count is compared with what is left of the frame before anything is
made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from struct import Struct as Packer
from typing import Any

from penstock.kafka.wire import primitives
from penstock.kafka.wire.layout import FIXED_CODES, NUMBER_CODES, Layout, SourceText, execute
from penstock.kafka.wire.schema import Field, StructType
from penstock.kafka.wire.structs import default_expression
from penstock.pace import Pace
from penstock.session import Buffer

Decoder = Callable[[Buffer, int, int], tuple[Any, int]]
SteppingDecoder = Callable[[Buffer, int, int, Pace], Coroutine[Any, Any, tuple[Any, int]]]


def compile_decoder(
    root: StructType, layout: Layout, classes: dict[str, Any], *, in_steps: bool = False
) -> Any:
    """The decoder of one version: from a buffer and a position in it to the root's object and how
    many of the elements it may have are left.

    It takes besides how many elements all arrays may have together; one more raises
    TooManyElementsError. What goes `in_steps` is a coroutine function, a SteppingDecoder.
    """
    writer = _DecoderWriter(layout, in_steps=in_steps)
    writer.write_root(root)
    namespace = {
        **classes,
        **writer.constants,
        "new": object.__new__,
        "bad_length": primitives.bad_length,
        "bad_tag_size": primitives.bad_tag_size,
        "too_many": primitives.too_many,
        "long_varint": primitives.long_varint,
        "read_varint": primitives.read_varint,
        "skip_tagged_fields": primitives.skip_tagged_fields,
        "uuid_of": primitives.uuid_of,
    }
    execute(str(writer.text), f"decoder {root.name} v{layout.version}", namespace)
    return namespace["decode"]


class _DecoderWriter:
    def __init__(self, layout: Layout, *, in_steps: bool) -> None:
        head = "def decode(data, position, elements_left):"
        if in_steps:
            head = "async def decode(data, position, elements_left, pace):"
        self.text = SourceText(head)
        self._in_steps = in_steps
        self.constants: dict[str, Any] = {}
        self._layout = layout
        self._targets: list[str] = []
        self._codes = ""
        self._conversions: list[str] = []

    def write_root(self, root: StructType) -> None:
        self.text.line("end = len(data)")
        name = self._write_struct(root)
        self.text.line(f"return {name}, elements_left")

    def _unpack_later(self, target: str, code: str) -> None:
        self._targets.append(target)
        self._codes += code

    def _unpack_now(self) -> None:
        if not self._targets:
            return
        if self._codes == "B":
            self.text.line(f"{self._targets[0]} = data[position]")
            self.text.line("position += 1")
        else:
            self._unpack_run()
        self._targets, self._codes, self._conversions = [], "", []

    def _unpack_run(self) -> None:
        packer = Packer(">" + self._codes)
        function = f"unpack_{self._codes.replace('?', 'bool')}"
        self.constants[function] = packer.unpack_from
        self.text.line(f"{', '.join(self._targets)}, = {function}(data, position)")
        self.text.line(f"position += {packer.size}")
        for line in self._conversions:
            self.text.line(line)

    def _write_struct(self, struct: StructType) -> str:
        """Write what decodes a struct at `position`; returns the name of the object made."""
        layout = self._layout
        name = self.text.new_name("struct")
        self._unpack_now()
        self.text.line(f"{name} = new({struct.name})")
        for field in layout.absent_fields(struct):
            self.text.line(f"{name}.{field.name} = {default_expression(field)}")
        for field in layout.plain_fields(struct):
            self._write_field(field, f"{name}.{field.name}")
        if layout.flexible:
            self._write_tagged_fields(struct, name)
        self._unpack_now()
        return name

    def _write_field(self, field: Field, target: str) -> None:
        if field.is_array:
            self._write_array(field, target)
        elif field.struct is not None:
            self._write_struct_field(field, field.struct, target)
        elif field.type in FIXED_CODES:
            self._unpack_later(target, FIXED_CODES[field.type])
            if field.type == "uuid":
                self._conversions.append(f"{target} = uuid_of({target})")
        else:
            self._write_bytes(field, target)

    def _write_struct_field(self, field: Field, struct: StructType, target: str) -> None:
        if not self._layout.is_nullable(field):
            name = self._write_struct(struct)
            self.text.line(f"{target} = {name}")
            return
        marker = self.text.new_name("marker")
        self._unpack_later(marker, "b")
        self._unpack_now()
        self.text.line(f"if {marker} < 0:")
        self.text.line(f"    {target} = None")
        self.text.line("else:")
        self.text.indent()
        self.text.line(f"{target} = {self._write_struct(struct)}")
        self.text.dedent()

    def _write_length(self, field: Field, target: str, unit: int) -> str:
        """Write what reads and checks the length before `field`; leaves the text inside `else`.

        Returns the name of the length. The caller dedents when the field is nullable.
        """
        text = self.text
        length = text.new_name("length")
        self._unpack_later(length, self._layout.length_code(field))
        self._unpack_now()
        if self._layout.flexible:
            text.line(f"if {length} > 127:")
            text.line(f"    {length}, position = long_varint(data, position, {length})")
            text.line(f"{length} -= 1")
        if self._layout.is_nullable(field):
            text.line(f"if {length} == -1:")
            text.line(f"    {target} = None")
            text.line("else:")
            text.indent()
        size = length if unit == 1 else f"{length} * {unit}"
        text.line(f"if {length} < 0 or {size} > end - position:")
        text.line(f"    raise bad_length({field.name!r}, {length}, end - position)")
        return length

    def _write_bytes(self, field: Field, target: str) -> None:
        """A string, bytes or records."""
        length = self._write_length(field, target, 1)
        text = self.text
        text.line(f"stop = position + {length}")
        value = {
            "string": "str(data[position:stop], 'utf-8')",
            "bytes": "bytes(data[position:stop])",
            "records": "data[position:stop]",
        }[field.type]
        text.line(f"{target} = {value}")
        text.line("position = stop")
        if self._layout.is_nullable(field):
            text.dedent()

    def _write_array(self, field: Field, target: str) -> None:
        size = self._layout.least_element_size(field)
        count = self._write_length(field, target, size)
        text = self.text
        text.line(f"elements_left -= {count}")
        text.line("if elements_left < 0:")
        text.line(f"    raise too_many({field.name!r}, {count})")
        if field.type in NUMBER_CODES:
            code = NUMBER_CODES[field.type]
            function = f"UNPACK_{code.replace('?', 'bool')}"
            self.constants[function] = primitives.ArrayStructs(code, "unpack_from")
            text.line(f"{target} = [*{function}[{count}](data, position)]")
            text.line(f"position += {count} * {size}")
        else:
            items = text.new_name("items")
            text.line(f"{target} = {items} = []")
            text.line(f"for _ in range({count}):")
            text.indent()
            text.line(f"{items}.append({self._write_element(field)})")
            if self._in_steps:
                text.line("if pace.is_over():")
                text.line("    await pace.others()")
            text.dedent()
        if self._layout.is_nullable(field):
            text.dedent()

    def _write_element(self, field: Field) -> str:
        if field.struct is not None:
            return self._write_struct(field.struct)
        name = self.text.new_name("element")
        self._write_field(element_of(field), name)
        self._unpack_now()
        return name

    def _write_tagged_fields(self, struct: StructType, name: str) -> None:
        text = self.text
        fields = self._layout.tagged_fields(struct)
        for field in fields:
            text.line(f"{name}.{field.name} = {default_expression(field)}")
        count = text.new_name("tags")
        self._unpack_later(count, "B")
        self._unpack_now()
        text.line(f"if {count}:")
        if not fields:
            text.line(f"    position = skip_tagged_fields(data, position, {count})")
            return
        text.indent()
        text.line(f"if {count} > 127:")
        text.line(f"    {count}, position = long_varint(data, position, {count})")
        text.line(f"for _ in range({count}):")
        text.indent()
        tag, size, stop = text.new_name("tag"), text.new_name("size"), text.new_name("stop")
        text.line(f"{tag}, position = read_varint(data, position)")
        text.line(f"{size}, position = read_varint(data, position)")
        text.line(f"{stop} = position + {size}")
        text.line(f"if {stop} > end:")
        text.line(f"    raise bad_length('tagged field', {size}, end - position)")
        for field in fields:
            text.line(f"if {tag} == {field.tag}:")
            text.indent()
            self._write_field(field, f"{name}.{field.name}")
            self._unpack_now()
            text.line(f"if position != {stop}:")
            text.line(f"    raise bad_tag_size({tag}, {size})")
            text.dedent()
        text.line(f"position = {stop}")
        text.dedent()
        text.dedent()


def element_of(field: Field) -> Field:
    """The array `field` as if it were one of its elements."""
    return Field(
        name=field.name,
        type=field.type,
        is_array=False,
        versions=field.versions,
        nullable=type(field.versions)(0, -1),
        tag=None,
        default=None,
        struct=field.struct,
    )
