"""Headers in both directions, and where a frame ends, fed whole, byte by byte and with more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.iggy.wire import frame, legacy
from penstock.iggy.wire.codec import choose
from penstock.iggy.wire.commands import COMMAND_OF, NON_REPLICATED, Command, Operation
from penstock.iggy.wire.dialect_v import CodecV
from penstock.iggy.wire.errors import ErrorCode, IggyError

sixteen = st.binary(min_size=16, max_size=16)
u64 = st.integers(0, 2**64 - 1)
u32 = st.integers(0, 2**32 - 1)
u8 = st.integers(0, 255)
request_headers = st.builds(frame.RequestHeader, sixteen, sixteen, u64, u64, u8, u64, u32)


@given(request_headers, st.binary(max_size=40))
def test_request_reads_back_as_built(header: frame.RequestHeader, body: bytes) -> None:
    built = b"".join(frame.build_request(header, body))
    assert frame.parse_request(built) == header
    assert built[frame.HEADER_SIZE :] == body
    assert isinstance(choose(built), CodecV)
    for size in range(frame.START_SIZE):
        assert frame.frame_size(built[:size]) is None
    assert frame.frame_size(built) == len(built)
    assert frame.frame_size(built + b"more") == len(built)


@given(request_headers, u32, st.binary(max_size=40))
def test_reply_echoes_what_clients_look_at(
    header: frame.RequestHeader, status: int, body: bytes
) -> None:
    built = b"".join(frame.build_reply(header, [body], status=status))
    reply = frame.parse_reply(built)
    assert reply.client == header.client
    assert reply.request_checksum == header.request_checksum
    assert (reply.request, reply.operation) == (header.request, header.operation)
    assert (reply.timestamp, reply.status) == (header.timestamp, status)
    assert frame.frame_size(built) == len(built)


def test_eviction_says_why_and_which_versions() -> None:
    reason = frame.EvictionReason.INCOMPATIBLE_PROTOCOL
    built = frame.build_eviction(b"c" * 16, reason, version=0x2C00, version_min=0x2C00)
    assert frame.frame_size(built) == len(built) == frame.HEADER_SIZE
    assert built[60] == 13
    assert built[128:144] == b"c" * 16
    assert built[144:152] == bytes.fromhex("002c0000002c0000")
    assert built[255] == 14
    assert not any(built[152:255])


@pytest.mark.parametrize("size", [0, 255, 256 + 64 * 1024 * 1024 + 1, 2**32 - 1])
def test_size_that_can_not_be_is_refused(size: int) -> None:
    head = bytes(48) + size.to_bytes(4, "little")
    with pytest.raises(IggyError):
        frame.frame_size(head)


def test_frame_of_another_kind_is_no_request() -> None:
    built = bytearray(b"".join(frame.build_request(frame.RequestHeader(*[b""] * 2, *[0] * 5), b"")))
    built[60] = 6
    with pytest.raises(IggyError):
        frame.parse_request(built)
    with pytest.raises(IggyError):
        frame.parse_reply(built)


def test_rejection_is_one_result_with_its_number() -> None:
    assert frame.rejected(ErrorCode.STREAM_ID_NOT_FOUND).hex() == "0100000000000000f1030000"


def test_every_operation_that_says_enough_stands_for_a_command() -> None:
    without = {Operation.REGISTER, Operation.NON_REPLICATED}
    assert set(COMMAND_OF) | without == set(Operation)
    assert COMMAND_OF[Operation.LOGOUT_USER] is Command.LOGOUT_USER
    assert not NON_REPLICATED & set(COMMAND_OF.values())


def test_legacy_frames_are_told_apart_and_measured() -> None:
    ping = bytes.fromhex("0400000001000000")
    codec = legacy.LegacyCodec()
    assert choose(ping) is not choose(bytes(4))
    assert isinstance(choose(ping), legacy.LegacyCodec)
    assert codec.frame_size(ping[:3]) is None
    assert codec.frame_size(ping) == codec.frame_size(ping + b"more") == 8
    asked = codec.parse(memoryview(ping))
    assert codec.command(asked) is Command.PING
    refused = codec.encode_error(asked, IggyError(ErrorCode.FEATURE_UNAVAILABLE))
    assert b"".join(refused).hex() == "0500000000000000"
    assert choose(ping) is not choose(ping), "each connection is found to speak what it speaks"
    for length in (1, 3, 2**31):
        with pytest.raises(IggyError):
            codec.frame_size(length.to_bytes(4, "little"))
