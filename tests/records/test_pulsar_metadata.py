"""The metadata of messages in a batch, in whatever way a client writes it."""

from __future__ import annotations

import base64
from typing import Final

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from penstock import records
from penstock.records import MalformedBatchError
from penstock.records.decoding import decode
from penstock.records.pulsar.metadata_pb2 import KeyValue, SingleMessageMetadata
from stored_batches import TIME, entry, metadata, own, pulsar_batch, read

_NUMBER, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_PAYLOAD: Final = b"payload"
_KEYS: Final = [b"", b"AAEC", b"/w==", b"QUJD" * 40]
_NUMBERS: Final = [0, 1, 127, 128, 1_700_000_000_000]
_NAMES: Final = {each.name: each.number for each in SingleMessageMetadata.DESCRIPTOR.fields}
_PROPERTY: Final = KeyValue(key="a", value="1").SerializeToString()


def varint(number: int, padding: int) -> bytes:
    """Return a number with so many bytes more than it needs."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    for _ in range(padding):
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


@st.composite
def fields(draw: st.DrawFn) -> bytes:
    """One field, of those that are known or another, with any type but where it is a property."""
    number = draw(st.sampled_from([*_NAMES.values(), 15, 16, 3000]).filter(lambda n: n != 3))
    kind = _BYTES
    if number != _NAMES["properties"]:
        kind = draw(st.sampled_from([_NUMBER, _BYTES, _NUMBER, _BYTES, _EIGHT, _FOUR]))
    padding = st.sampled_from([0, 0, 0, 1])
    tag = varint(number << 3 | kind, draw(padding))
    if kind == _NUMBER:
        return tag + varint(draw(st.sampled_from(_NUMBERS)), draw(padding))
    if kind != _BYTES:
        return tag + bytes(8 if kind == _EIGHT else 4)
    said = _PROPERTY if number == _NAMES["properties"] else draw(st.sampled_from(_KEYS))
    return tag + varint(len(said), draw(padding)) + said


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """The metadata of a message, which may end too early."""
    said = draw(st.lists(fields(), max_size=6))
    tag = varint(_NAMES["payload_size"] << 3, draw(st.sampled_from([0, 0, 1])))
    size = tag + varint(len(_PAYLOAD), draw(st.sampled_from([0, 0, 1])))
    said.insert(draw(st.integers(0, len(said))), size)
    whole = b"".join(said)
    return whole[
        : draw(st.sampled_from([len(whole), len(whole), draw(st.integers(0, len(whole)))]))
    ]


def batch(said: bytes, behind: bytes = b"") -> bytes:
    """Return a batch of the same message twice."""
    message = len(said).to_bytes(4, "big") + said + _PAYLOAD
    return pulsar_batch(entry(metadata(num_messages_in_batch=2), message * 2 + behind), 0, 2)


def parsed(said: bytes) -> SingleMessageMetadata | None:
    """Return what protobuf's own library makes of it."""
    try:
        found = SingleMessageMetadata.FromString(said)
    except DecodeError:
        return None
    found.DiscardUnknownFields()
    return found if found.IsInitialized() and found.payload_size == len(_PAYLOAD) else None


@given(messages())
def test_metadata_is_read_in_whatever_order_and_form_it_is_written(said: bytes) -> None:
    """As protobuf's own library does, and as what that writes, which is how clients write it."""
    found = parsed(said)
    if found is None:
        with pytest.raises(MalformedBatchError):
            records.decode(batch(said))
        return
    decoded = read(records.decode(batch(said)))
    assert decoded == read(records.decode(batch(found.SerializeToString())))
    without = decode(batch(said), headers=False)
    assert own(decoded) == read(without)
    if found.compacted_out:
        assert not decoded
        return
    key = found.partition_key.encode() if found.HasField("partition_key") else None
    if key is not None and found.partition_key_b64_encoded:
        key = base64.b64decode(key)
    value = None if found.null_value else _PAYLOAD
    time = found.event_time * 1000 or TIME
    expected = (value, None if found.null_partition_key else key, time)
    assert [(each.value, each.key, each.time) for each in decoded] == [expected] * 2
    assert all(each.headers.count((b"a", b"1")) == len(found.properties) for each in decoded)


def test_bytes_behind_the_last_message_are_refused() -> None:
    said = SingleMessageMetadata(payload_size=len(_PAYLOAD), partition_key="a")
    with pytest.raises(MalformedBatchError):
        records.decode(batch(said.SerializeToString(), b"\0"))
