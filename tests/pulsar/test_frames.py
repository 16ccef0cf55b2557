"""Frames: what the real client sends is understood, and nothing else ends badly."""

from __future__ import annotations

import contextlib

import pytest
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import given
from hypothesis import strategies as st

from penstock.limits import PULSAR_COMMAND_BYTES, PULSAR_COMMAND_PARTS, PULSAR_MESSAGE_BYTES
from penstock.pulsar.wire.frames import (
    FRAME_PADDING,
    encode_command,
    encode_payload_command,
    frame_size,
    parse_frame,
)
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandSend, MessageIdData
from penstock.session import PeerError
from pulsar_golden import GOLDEN, Golden

LIMIT = int(PULSAR_MESSAGE_BYTES)


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.command)
def test_what_the_real_client_sends_is_understood_whole(golden: Golden) -> None:
    command, entry = parse_frame(memoryview(golden.frame))
    assert BaseCommand.Type.Name(command.type) == golden.command
    assert not UnknownFieldSet(command)
    assert command.IsInitialized()
    assert encode_payload_command(command, len(entry)) + entry == golden.frame
    assert bool(entry) == (golden.command == "SEND")


@pytest.mark.parametrize("golden", GOLDEN[::7], ids=lambda golden: golden.command)
def test_the_size_is_told_as_soon_as_it_is_there(golden: Golden) -> None:
    for count in range(len(golden.frame)):
        expected = len(golden.frame) if count >= 4 else None
        assert frame_size(memoryview(golden.frame[:count]), LIMIT) == expected
    assert frame_size(memoryview(golden.frame + b"next"), LIMIT) == len(golden.frame)


@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4),
    st.binary(max_size=100),
)
def test_commands_and_entries_come_back(
    ledger: int, sequence: int, ack_set: list[int], entry: bytes
) -> None:
    message_id = MessageIdData(ledgerId=ledger, entryId=sequence, ack_set=ack_set)
    send = CommandSend(producer_id=1, sequence_id=sequence, message_id=message_id)
    command = BaseCommand(type=BaseCommand.SEND, send=send)
    frame = encode_payload_command(command, len(entry)) + entry
    assert frame_size(memoryview(frame), LIMIT) == len(frame)
    parsed = parse_frame(memoryview(frame))
    assert parsed.command == command
    assert parsed.entry == entry
    simple = parse_frame(memoryview(encode_command(command)))
    assert (simple.command, bytes(simple.entry)) == (command, b"")


def test_the_entry_is_a_view_of_the_frame() -> None:
    frame = bytearray(next(golden.frame for golden in GOLDEN if golden.command == "SEND"))
    assert parse_frame(memoryview(frame)).entry.obj is frame


@pytest.mark.parametrize("total", [0, 3, LIMIT + FRAME_PADDING + 1, 2**31, 2**32 - 1])
def test_an_impossible_size_is_refused_before_memory_is_taken(total: int) -> None:
    with pytest.raises(PeerError, match=f"{total} bytes"):
        frame_size(memoryview(total.to_bytes(4)), LIMIT)


def test_the_largest_frame_is_allowed() -> None:
    largest = LIMIT + FRAME_PADDING
    assert frame_size(memoryview(largest.to_bytes(4)), LIMIT) == largest + 4


@pytest.mark.parametrize(
    "frame",
    [b"\0\0\0\4", b"\0\0\0\4\0\0\0\1", b"\0\0\0\4\xff\xff\xff\xff", b"\0\0\0\6\0\0\0\2\x08"],
)
def test_a_command_that_is_cut_off_is_refused(frame: bytes) -> None:
    with pytest.raises(PeerError):
        parse_frame(memoryview(frame))


@given(st.binary(max_size=200))
def test_rubbish_is_refused_or_parsed_but_never_a_surprise(rubbish: bytes) -> None:
    frame = (4 + len(rubbish)).to_bytes(4) + len(rubbish).to_bytes(4) + rubbish
    with contextlib.suppress(PeerError):
        parse_frame(memoryview(frame))


def test_a_command_of_tomorrow_has_no_type_for_us() -> None:
    """An unknown value of an enumeration is an unknown field in proto2."""
    command, _ = parse_frame(memoryview(b"\0\0\0\7\0\0\0\3\x08\xff\x01"))
    assert not command.HasField("type")


def test_a_command_has_so_many_bytes_at_most() -> None:
    command = BaseCommand(type=BaseCommand.CONNECT)
    command.connect.auth_data = bytes(PULSAR_COMMAND_BYTES)
    with pytest.raises(PeerError, match="524288 are allowed"):
        parse_frame(memoryview(_frame(command)))


@pytest.mark.parametrize("kind", ["subscribe", "producer"])
def test_a_command_has_so_many_properties_at_most(kind: str) -> None:
    number = BaseCommand.DESCRIPTOR.fields_by_name[kind].number
    command = BaseCommand(type=number)
    metadata = getattr(command, kind).metadata
    while len(metadata) < PULSAR_COMMAND_PARTS - 2:
        metadata.add(key="k", value="v")
    frame = _frame(command)
    assert parse_frame(memoryview(frame)).command == command
    metadata.add(key="k", value="v")
    with pytest.raises(PeerError, match="over 1000 parts"):
        parse_frame(memoryview(_frame(command)))


def _frame(command: BaseCommand) -> bytes:
    encoded = command.SerializePartialToString()
    return (len(encoded) + 4).to_bytes(4) + len(encoded).to_bytes(4) + encoded
