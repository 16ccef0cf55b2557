"""Frames come out as they went in, however they are cut, and memory follows what arrived."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import limits
from penstock.memory import Memory
from penstock.server.intake import Intake
from penstock.server.machine import resident_bytes
from penstock.session import PeerError


def frame_size(head: memoryview) -> int | None:
    return 4 + int.from_bytes(head[:4]) if len(head) >= 4 else None


def feed(intake: Intake, stream: bytes, steps: list[int]) -> list[bytes]:
    """Give the stream in pieces of at most `steps` bytes, and take all frames after each."""
    frames: list[bytes] = []
    at = turn = 0
    while at < len(stream):
        space = intake.space()
        count = min(steps[turn % len(steps)], len(space), len(stream) - at)
        space[:count] = stream[at : at + count]
        del space
        intake.filled(count)
        at += count
        turn += 1
        while (frame := intake.next_frame(frame_size)) is not None:
            frames.append(bytes(frame))
        intake.keep()
    return frames


@given(
    sizes=st.lists(st.integers(0, 300), max_size=20),
    steps=st.lists(st.integers(1, 200), min_size=1, max_size=10),
)
def test_frames_come_out_as_they_went_in(sizes: list[int], steps: list[int]) -> None:
    frames = [size.to_bytes(4) + bytes([size % 251]) * size for size in sizes]
    intake = Intake(memoryview(bytearray(64)), Memory().receiving)
    assert feed(intake, b"".join(frames), steps) == frames


def test_a_large_frame_is_received_in_place() -> None:
    size = limits.FRAME_KEPT_BYTES - 5
    frame = size.to_bytes(4) + bytes(size)
    intake = Intake(memoryview(bytearray(limits.RECEIVE_BUFFER_BYTES)), Memory().receiving)
    assert feed(intake, frame + b"\0\0\0\1x", [1 << 20]) == [frame, b"\0\0\0\1x"]


def test_a_frame_that_is_a_mapping_is_received_in_place() -> None:
    size = limits.FRAME_KEPT_BYTES
    frame = size.to_bytes(4) + bytes(range(256)) * (size // 256)
    memory = Memory()
    intake = Intake(memoryview(bytearray(limits.RECEIVE_BUFFER_BYTES)), memory.receiving)
    assert feed(intake, frame + b"\0\0\0\1x", [1 << 20]) == [frame, b"\0\0\0\1x"]
    assert memory.used == 0


def test_a_large_frame_takes_memory_as_it_arrives() -> None:
    intake = Intake(memoryview(bytearray(1024)), Memory().receiving)
    resident = resident_bytes()
    assert resident is not None
    before = resident()
    feed(intake, (1 << 30).to_bytes(4), [4])
    received = 4
    while received < 8 << 20:
        space = intake.space()[: 1 << 20]
        space[:] = b"x" * len(space)
        intake.filled(len(space))
        received += len(space)
        assert intake.next_frame(frame_size) is None
    assert resident() - before < 2 * received


def test_frames_of_which_little_arrives_take_little_memory() -> None:
    """Also those that are no mapping: a length is only a claim."""
    shared = memoryview(bytearray(1024))
    resident = resident_bytes()
    assert resident is not None
    before = resident()
    intakes = [Intake(shared, Memory().receiving) for _ in range(100)]
    for intake in intakes:
        feed(intake, (limits.FRAME_KEPT_BYTES - 4).to_bytes(4) + bytes(100), [104])
        assert len(intake.space()) == limits.FRAME_KEPT_BYTES - 104
    assert resident() - before < 16 << 20


def test_a_frame_is_received_where_it_began() -> None:
    """A copy into a larger buffer would touch fresh memory for all that had arrived."""
    size = limits.FRAME_KEPT_BYTES - 4
    intake = Intake(memoryview(bytearray(limits.RECEIVE_BUFFER_BYTES)), Memory().receiving)
    assert feed(intake, size.to_bytes(4) + bytes(1 << 20), [1 << 20]) == []
    begun = intake.space().obj
    assert feed(intake, bytes(3 << 20), [1 << 20]) == []
    assert intake.space().obj is begun


def test_nothing_is_shown_of_a_frame_but_what_arrived() -> None:
    intake = Intake(memoryview(bytearray(1024)), Memory().receiving)
    begun = (1 << 20).to_bytes(4) + b"begun"
    feed(intake, begun, [100])
    assert intake.head(100) == begun
    assert intake.next_frame(frame_size) is None


def test_a_session_that_finds_no_frame_is_an_error_before_the_buffer_is_full() -> None:
    intake = Intake(memoryview(bytearray(limits.RECEIVE_BUFFER_BYTES)), Memory().receiving)
    space = intake.space()
    intake.filled(limits.FRAME_HEAD_BYTES)
    del space
    with pytest.raises(PeerError, match="no frame begins"):
        intake.next_frame(lambda head: None)


def test_a_frame_without_bytes_is_a_bug_and_no_endless_loop() -> None:
    intake = Intake(memoryview(bytearray(1024)), Memory().receiving)
    intake.space()
    intake.filled(1)
    with pytest.raises(ValueError, match="0 bytes"):
        intake.next_frame(lambda head: 0)


def test_connections_share_one_buffer() -> None:
    shared = memoryview(bytearray(1024))
    one, other = Intake(shared, Memory().receiving), Intake(shared, Memory().receiving)
    feed(one, b"\0\0\0\4he", [100])
    feed(other, b"\0\0\0\7noi", [100])
    assert feed(one, b"re", [100]) == [b"\0\0\0\4here"]
    assert feed(other, b"sier", [100]) == [b"\0\0\0\7noisier"]
