"""Iggy messages of every kind, for tests of the wire."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from penstock.iggy.wire import fields as wire_fields
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.identifiers import (
    Consumer,
    ConsumerKind,
    Identifier,
    Partitioning,
    PartitioningKind,
    PollingKind,
    PollingStrategy,
)
from penstock.iggy.wire.message import Message
from penstock.iggy.wire.options import Entry, Options, SizedOptions, Typed, ValueKind

MESSAGES = sorted(
    (
        kind
        for module in (requests, replies)
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Message) and kind is not Message
    ),
    key=lambda kind: kind.__name__,
)

short_text = st.text(max_size=60)
names = st.text(min_size=1, max_size=60)
typed = st.builds(Typed, st.sampled_from(ValueKind), st.binary(min_size=1, max_size=255))
entries = st.lists(st.builds(Entry, typed, typed), max_size=5)
options = st.dictionaries(names, typed, max_size=4)
identifiers = st.builds(Identifier, st.integers(0, 2**32 - 1) | names)
consumers = st.builds(Consumer, st.sampled_from(ConsumerKind), identifiers)
partitionings = st.one_of(
    st.just(Partitioning(PartitioningKind.BALANCED)),
    st.integers(0, 2**32 - 1).map(Partitioning.partition),
    st.binary(min_size=1, max_size=255).map(lambda key: Partitioning(PartitioningKind(3), key)),
)
strategies = st.builds(PollingStrategy, st.sampled_from(PollingKind), st.integers(0, 2**64 - 1))

_OF_FIELD: dict[int, st.SearchStrategy[Any]] = {
    id(hint): strategy
    for hint, strategy in [
        (wire_fields.U8, st.integers(0, 2**8 - 1)),
        (wire_fields.U16, st.integers(0, 2**16 - 1)),
        (wire_fields.U32, st.integers(0, 2**32 - 1)),
        (wire_fields.U64, st.integers(0, 2**64 - 1)),
        (wire_fields.F32, st.floats(width=32, allow_nan=False)),
        (wire_fields.Bool, st.booleans()),
        (wire_fields.OptionalU32, st.none() | st.integers(0, 2**32 - 1)),
        (wire_fields.Name, names),
        (wire_fields.ShortText, short_text),
        (wire_fields.Text, short_text),
        (wire_fields.ShortBytes, st.binary(max_size=60)),
        (wire_fields.LongBytes, st.binary(max_size=60)),
        (wire_fields.RestView, st.binary(max_size=60)),
        (Options, options),
        (SizedOptions, options),
    ]
}
_OF_BLOCK = {
    Identifier: identifiers,
    Consumer: consumers,
    Partitioning: partitionings,
    PollingStrategy: strategies,
}


def messages(kind: type[Message]) -> st.SearchStrategy[Message]:
    """Build messages of one kind from its own declaration."""
    hints = get_type_hints(kind, include_extras=True)
    return st.builds(kind, **{name: _values(hints[name]) for name in kind.field_names})


def _values(hint: Any) -> st.SearchStrategy[Any]:
    if id(hint) in _OF_FIELD:
        return _OF_FIELD[id(hint)]
    if get_origin(hint) is Annotated:
        field = get_args(hint)[-1]
        if field.item is None:  # What only other dialects say.
            return st.just(field.read(wire_fields.Reader(b"")))
        (item,) = get_args(get_args(hint)[0])
        return st.lists(_values(wire_fields.U32 if item is int else item), max_size=3)
    return _OF_BLOCK[hint] if hint in _OF_BLOCK else messages(hint)
