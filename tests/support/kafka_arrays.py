"""Every array in the requests of the APIs that are served, from their schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.kafka.handlers import HANDLERS
from penstock.kafka.wire.schema import Field, StructType


class Many(NamedTuple):
    """An array of a request, by the fields that lead to it, and a version that has it."""

    name: str
    version: int
    path: tuple[Field, ...]
    are_new: bool
    """Whether each element has a name of its own, that nothing has yet."""

    def __str__(self) -> str:
        fields = ".".join(field.name for field in self.path)
        return f"{self.name}-{fields}-{'new' if self.are_new else 'same'}"


def arrays(struct: StructType, path: tuple[Field, ...] = ()) -> Iterator[tuple[Field, ...]]:
    for field in struct.fields:
        if field.is_array:
            yield (*path, field)
        if field.struct is not None:
            yield from arrays(field.struct, (*path, field))


def all_arrays() -> Iterator[Many]:
    for handler in HANDLERS.values():
        for path in arrays(handler.api.request.root):
            version = min(handler.versions.last, *(field.versions.last for field in path))
            if not all(version in field.versions for field in path):
                continue
            for are_new in (False, True):
                yield Many(handler.api.name, version, path, are_new)
