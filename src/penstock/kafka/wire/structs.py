"""The Python side of a message: one class with slots a struct, the same for all its versions.

The classes are made from the schema at run time; `messages/*.pyi`, which `stubs.py` writes, tell
their fields to type checkers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, dataclass_transform

from penstock.kafka.wire.layout import execute
from penstock.kafka.wire.primitives import NO_UUID
from penstock.kafka.wire.schema import Field, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.session import Part

    Read = TypeVar("Read")

    class RecordData(Generic[Read]):
        """A field of record data: one buffer when it was decoded, given as one or several."""

        def __get__(self, struct: object, owner: type) -> Read: ...
        def __set__(self, struct: object, value: Read | Sequence[Part]) -> None: ...


EMPTY: tuple[()] = ()

NUMBER_TYPES = {"int8", "int16", "uint16", "int32", "int64"}


@dataclass_transform(kw_only_default=True)
class Struct:
    """A struct of a message, its attributes named as the fields in the schema.

    It has the fields of all versions: a decoder gives its default to a field that the version
    lacks, an encoder leaves such a field out whatever its value. Construct with keywords; what is
    not given has its default. Two are equal when all fields are. A field that is a struct by
    itself defaults to one object shared by all, so replace it and do not change it.
    """

    __slots__ = ()
    field_names: ClassVar[tuple[str, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.field_names)

    __hash__ = None  # type: ignore[assignment]  # compared by value, and changeable

    def __repr__(self) -> str:
        values = (f"{name}={getattr(self, name)!r}" for name in self.field_names)
        return f"{type(self).__name__}({', '.join(values)})"


def taking_apart(struct: Struct) -> Iterator[None]:
    """Empty all lists of a struct that nobody needs any more; yields after each element.

    Many objects that are freed at once take as long as it took to make them.
    """
    for name in struct.field_names:
        value = getattr(struct, name)
        if type(value) is list:
            while value:
                element = value.pop()
                if isinstance(element, Struct):
                    yield from taking_apart(element)
                yield


def default_name(struct: StructType) -> str:
    """The name, in generated code, of the shared object that a field of this type defaults to."""
    return f"DEFAULT_{struct.name}"


def default_expression(field: Field) -> str:
    """The default of `field` in generated code. An array's is `[]`: new each time."""
    if field.default is not None:
        return repr(field.default.value)
    if field.is_array:
        return "[]"
    if field.struct is not None:
        return default_name(field.struct)
    if field.type in NUMBER_TYPES:
        return "0"
    return {
        "bool": "False",
        "float64": "0.0",
        "uuid": "NO_UUID",
        "string": "''",
        "bytes": "b''",
        "records": "b''",
    }[field.type]


def build_classes(structs: list[StructType]) -> dict[str, Any]:
    """The classes of a message's structs by name, with their shared defaults beside them."""
    namespace: dict[str, Any] = {"Struct": Struct, "NO_UUID": NO_UUID, "EMPTY": EMPTY}
    for struct in reversed(structs):
        execute(_class_source(struct), f"struct {structs[0].name}.{struct.name}", namespace)
        namespace[default_name(struct)] = namespace[struct.name]()
    return namespace


def _class_source(struct: StructType) -> str:
    parameters = []
    assignments = []
    for field in struct.fields:
        default = default_expression(field)
        name = field.name
        if default == "[]":
            parameters.append(f"{name}=EMPTY")
            assignments.append(f"        self.{name} = [] if {name} is EMPTY else {name}")
        else:
            parameters.append(f"{name}={default}")
            assignments.append(f"        self.{name} = {name}")
    names = tuple(field.name for field in struct.fields)
    keywords = f", *, {', '.join(parameters)}" if parameters else ""
    return "\n".join(
        [
            f"class {struct.name}(Struct):",
            f"    __slots__ = field_names = {names!r}",
            f"    def __init__(self{keywords}):",
            *(assignments or ["        pass"]),
        ]
    )
