"""Messages of Iggy's older dialects become batches of today's, whole, and come out as they were."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.records.iggy.batch import (
    IggyBatchError,
    stamp_iggy_batch,
    verify_iggy_batch,
)
from penstock.records.iggy.older import Form, from_older
from penstock.records.iggy.older_polls import Frames, Unread, to_older

T = 1_693_526_400_000_000
SPAN = 2**32 - 1
SOME = st.lists(
    st.tuples(
        st.binary(min_size=1, max_size=40),
        st.lists(st.tuples(st.binary(min_size=1, max_size=9), st.binary(min_size=1, max_size=9))),
        st.integers(T, T + SPAN),
    ),
    min_size=1,
    max_size=5,
)


def headers(form: Form, entries: list[tuple[bytes, bytes]]) -> bytes:
    kind = b"\2" if form is Form.WITH_RESERVE else b""
    sized = [(struct.pack("<I", len(each)) + each for each in entry) for entry in entries]
    return b"".join(kind + key + b"\1" + value for key, value in sized)


def sent(form: Form, messages: list[tuple[bytes, bytes, int]]) -> bytes:
    """The messages of one request; ids count from 1."""
    index = body = b""
    for number, (payload, block, at) in enumerate(messages, 1):
        identity, sizes = number.to_bytes(16, "little"), (len(block), len(payload))
        if form is Form.EARLY:
            body += identity + struct.pack("<I", sizes[0]) + block
            body += struct.pack("<I", sizes[1]) + payload
            continue
        body += struct.pack("<8x16s8x8xQII", identity, at, *sizes) + bytes(form - 56)
        body += payload + block
        index += struct.pack("<II8x", 0, len(body))
    return index + body


def polled(form: Form, data: bytes) -> list[tuple[int, int, bytes, bytes, int]]:
    """Number, offset, payload, headers and time of each message."""
    found, at = [], 0
    while at < len(data):
        if form is Form.EARLY:
            offset, _, time, number, _, size = struct.unpack_from("<QBQ16sII", data, at)
            block, at = data[at + 41 : at + 41 + size], at + 45 + size
            size = int.from_bytes(data[at - 4 : at], "little")
            payload, at = data[at : at + size], at + size
        else:
            number, offset, time, size, length = struct.unpack_from("<8x16sQ8xQII", data, at)
            payload = data[at + form : at + form + length]
            at += form + length + size
            block = data[at - size : at]
        found.append((int.from_bytes(number, "little"), offset, payload, block, time))
    return found


def stored(form: Form, data: bytes, count: int) -> bytes:
    """The batch as the log gets it, which has to be one that today's client might have sent."""
    restated = from_older(data, form, count)
    body = bytearray(restated.body)
    stamp_iggy_batch(body, 0, 7, T)
    assert verify_iggy_batch(bytes(body)) == restated.facts
    return bytes(body)


@pytest.mark.parametrize("form", Form)
@given(messages=SOME)
def test_what_was_sent_is_polled(form: Form, messages: list[tuple[bytes, list, int]]) -> None:  # type: ignore[type-arg]
    said = [(payload, headers(form, entries), at) for payload, entries, at in messages]
    body = stored(form, sent(form, said), len(said))
    (batch,) = [Frames(body, body, 256)]
    out = bytes(to_older([batch], len(said), form))
    expected = [
        (number + 1, 7 + number, payload, block, T if form is Form.EARLY else at)
        for number, (payload, block, at) in enumerate(said)
    ]
    assert polled(form, out) == expected
    apart = bytes(to_older([Frames(body[:256], body[256:], 0)], len(said), form))
    assert apart == out


def unread(batch: bytes) -> Unread:
    """A batch that is read when its messages are laid out."""

    def read(target: memoryview) -> None:
        target[:] = batch

    return Unread(len(batch), read)


LONG = [(bytes([number]) * 9, b"v" * 200) for number in range(60)]


@pytest.mark.parametrize("form", Form)
@given(runs=st.lists(SOME, min_size=1, max_size=4), long=st.integers(0, 60))
def test_messages_may_be_written_over_what_is_read(
    form: Form,
    runs: list[list[tuple[bytes, list, int]]],  # type: ignore[type-arg]
    long: int,
) -> None:
    bodies = []
    for messages in [*runs, [(b"x", LONG[:long], T)]]:
        said = [(payload, headers(form, entries), at) for payload, entries, at in messages]
        bodies.append(stored(form, sent(form, said), len(said)))
    count = sum(map(len, runs)) + 1
    frames = [Frames(body, body, 256) for body in bodies]
    expected = bytes(to_older(frames, count, form))
    assert bytes(to_older([unread(body) for body in bodies], count, form)) == expected
    mixed = [frames[0], *(unread(body) for body in bodies[1:-1]), frames[-1]]
    assert bytes(to_older(mixed, count, form)) == expected


def test_times_that_a_batch_can_not_say_are_brought_into_it() -> None:
    form = Form.WITH_RESERVE
    times = [T + 10, T, T + SPAN + 99, 2**63, 0]
    body = stored(form, sent(form, [(b"x", b"", at) for at in times]), len(times))
    out = polled(form, bytes(to_older([Frames(body, body, 256)], len(times), form)))
    assert [at for *_, at in out] == [T + 10, T, T + SPAN, T + SPAN, T + SPAN]


def test_ids_are_given_where_there_are_none() -> None:
    data = 2 * (bytes(16) + struct.pack("<II", 0, 1) + b"x")
    ids = {stored(Form.EARLY, data, 0)[256 + 49 * n + 8 :][:16] for n in range(2)}
    assert len(ids) == 2
    for each in ids:
        assert UUID(bytes=each[::-1]).version == 4


@pytest.mark.parametrize("form", Form)
@given(data=st.binary(max_size=300), count=st.integers(0, 2**32 - 1))
def test_any_bytes_are_messages_or_refused(form: Form, data: bytes, count: int) -> None:
    try:
        stored(form, data, count)
    except IggyBatchError:
        return


@pytest.mark.parametrize("form", Form)
@given(messages=SOME, place=st.integers(0), byte=st.integers(1, 255))
def test_a_changed_byte_is_refused_or_another_message(
    form: Form,
    messages: list[tuple[bytes, list, int]],
    place: int,
    byte: int,  # type: ignore[type-arg]
) -> None:
    said = [(payload, headers(form, entries), at) for payload, entries, at in messages]
    data = bytearray(sent(form, said))
    data[place % len(data)] ^= byte
    try:
        stored(form, bytes(data), len(said))
    except IggyBatchError:
        return
