"""Goal: a poll whose place was read before says the same as one that is read from the start."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.iggy.wire import dialect_e, dialect_l, dialect_l_0_5, requests
from penstock.iggy.wire.errors import IggyError
from penstock.iggy.wire.fields import Reader
from penstock.iggy.wire.message import Message
from penstock.iggy.wire.placed_poll import PlacedPoll

KINDS = [
    requests.PollMessages,
    dialect_l.PollMessages,
    dialect_l.PollMessagesWithoutReserve,
    dialect_l_0_5.PollMessages,
    dialect_e.PollMessages,
]
IDENTIFIERS = st.one_of(
    st.integers(0, 2**32 - 1).map(lambda number: struct.pack("<BBI", 1, 4, number)),
    st.binary(max_size=9).map(lambda name: bytes([2, len(name)]) + name),
)
PLACES = st.tuples(
    st.one_of(st.just(b"\1"), st.just(b"\2"), st.binary(max_size=2)),
    st.one_of(IDENTIFIERS, st.binary(min_size=4, max_size=4)),
    IDENTIFIERS,
    IDENTIFIERS,
    st.one_of(st.binary(min_size=4, max_size=5), st.just(b"\1\1\0\0\0")),
).map(b"".join)
ENDS = st.tuples(
    st.integers(0, 7), st.integers(0, 2**64 - 1), st.integers(0, 3), st.integers(0, 2)
).map(lambda values: struct.pack("<BQIB", *values))


def read(kind: type[PlacedPoll], data: bytes) -> tuple[object, int] | object:
    """What is said and how much is left, or the refusal."""
    reader = Reader(data)
    try:
        return kind.read(reader), reader.remaining
    except IggyError as error:
        return error.code


def read_anew(kind: type[PlacedPoll], data: bytes) -> tuple[object, int] | object:
    """The same, as messages of all other kinds are read."""
    reader = Reader(data)
    try:
        return Message.read.__func__(kind, reader), reader.remaining  # type: ignore[attr-defined]
    except IggyError as error:
        return error.code


@pytest.mark.parametrize("kind", KINDS)
@given(place=PLACES, ends=st.lists(ENDS, min_size=1, max_size=3), behind=st.binary(max_size=20))
def test_the_place_is_read_once(
    kind: type[PlacedPoll], place: bytes, ends: list[bytes], behind: bytes
) -> None:
    for data in (*(place + end for end in ends), place + ends[0] + behind, place, behind):
        assert read(kind, data) == read_anew(kind, data)


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_a_known_place_is_not_read_anew(
    kind: type[PlacedPoll], monkeypatch: pytest.MonkeyPatch
) -> None:
    from_one = kind in (dialect_e.PollMessages, dialect_l_0_5.PollMessages)
    partition = b"\1\0\0\0" if from_one else b"\1\1\0\0\0"
    consumer = b"\1\1\0\0\0" if kind is dialect_e.PollMessages else b"\1\1\4\1\0\0\0"
    place = consumer + 2 * struct.pack("<BBI", 1, 4, 7) + partition
    data = [place + struct.pack("<BQIB", 1, offset, 10, 0) for offset in range(3)]
    first = kind.read(Reader(data[0]))
    monkeypatch.setattr(kind, "read_fields", None)
    for offset, each in enumerate(data):
        found = kind.read(Reader(each))
        assert vars(found) == {**vars(first), "strategy": vars(found)["strategy"]}
        assert vars(found)["strategy"].value == offset
