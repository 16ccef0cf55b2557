"""The checkpoint file: every state under its name, older versions, and what can't be one."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from fastcrc.crc32 import iscsi as crc32c

from faulty_files import FaultyFileSystem, Survival
from log_batches import DIRECTORY, fill, open_log, read_all
from penstock.limits import (
    CHECKPOINT_STATE_APART_BYTES,
    CHECKPOINT_STATE_BYTES,
    CHECKPOINT_STATES,
)
from penstock.log import Flusher
from penstock.log.checkpoint import (
    NAME,
    Checkpoint,
    Section,
    read_checkpoint,
    remove_lost_states,
    write_checkpoint,
)
from penstock.log.pieces import Pieces, State
from penstock.log.state_files import write_states

STATES = {"one": Section(90, b"state"), "zwei-\u00fc": Section(8, b""), "": Section(0, b"x")}
FULL = Checkpoint(90, 40, 1_234, 17, STATES)


@pytest.fixture
def disk() -> FaultyFileSystem:
    disk = FaultyFileSystem()
    disk.make_directory(DIRECTORY)
    return disk


def store(disk: FaultyFileSystem, content: bytes, crc: int | None = None) -> None:
    file = disk.open(DIRECTORY / NAME, write=True, create=True)
    file.truncate(0)
    file.pwritev([content, struct.pack(">I", crc32c(content) if crc is None else crc)], 0)
    file.close()


def stored(disk: FaultyFileSystem) -> bytes:
    return bytes(disk.content(DIRECTORY / NAME).live)


def read(disk: FaultyFileSystem) -> Checkpoint | None:
    return read_checkpoint(disk, DIRECTORY, disk.entries(DIRECTORY)[NAME])


@pytest.mark.parametrize("checkpoint", [Checkpoint(), FULL])
def test_what_was_written_is_read(disk: FaultyFileSystem, checkpoint: Checkpoint) -> None:
    write_checkpoint(disk, DIRECTORY, checkpoint)
    assert read(disk) == checkpoint


def test_no_bit_may_be_wrong(disk: FaultyFileSystem) -> None:
    write_checkpoint(disk, DIRECTORY, FULL)
    data = disk.content(DIRECTORY / NAME).live
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        assert read(disk) is None
        data[bit // 8] ^= 1 << bit % 8
    assert read(disk) == FULL


def test_no_length_can_lead_out_of_the_file(disk: FaultyFileSystem) -> None:
    write_checkpoint(disk, DIRECTORY, FULL)
    content = stored(disk)[:-4]
    for size in range(len(content)):
        store(disk, content[:size])
        assert read(disk) is None
    store(disk, content + b"x")
    assert read(disk) is None
    for position in range(38, len(content)):  # counts and sizes lie here, among other things
        for value in (0, 0xFF):
            store(disk, content[:position] + bytes([value]) + content[position + 1 :])
            found = read(disk)
            assert found is None or sum(len(s.state) for s in found.states.values()) < len(content)


LARGE = b"bits" * (CHECKPOINT_STATE_APART_BYTES // 4) + b"."


def with_large(state: State, offset: int = 90) -> Checkpoint:
    return Checkpoint(90, 40, 1_234, 17, {**STATES, "large": Section(offset, state)})


def state_files(disk: FaultyFileSystem) -> list[str]:
    return [name for name in disk.entries(DIRECTORY) if name.startswith("state")]


def test_a_large_state_is_written_when_it_has_changed(disk: FaultyFileSystem) -> None:
    write_checkpoint(disk, DIRECTORY, with_large(LARGE, 80))
    first = state_files(disk)
    assert len(first) == 1
    assert len(stored(disk)) < 1_000
    assert read(disk) == with_large(LARGE, 80)
    before = disk.content(DIRECTORY / first[0])
    write_checkpoint(disk, DIRECTORY, with_large(LARGE))
    assert disk.content(DIRECTORY / first[0]) is before
    write_checkpoint(disk, DIRECTORY, with_large(LARGE + LARGE))
    assert read(disk) == with_large(LARGE + LARGE)
    assert len(state_files(disk)) == 1
    assert state_files(disk) != first


@pytest.mark.parametrize("size", [1, 100, 1_000])
def test_a_state_in_pieces_is_kept_as_one(disk: FaultyFileSystem, size: int) -> None:
    pieces = [bytes([number % 251]) * (number % 997) for number in range(size)]
    whole = b"".join(pieces)
    write_checkpoint(disk, DIRECTORY, with_large(Pieces(pieces)))
    assert read(disk) == with_large(whole)
    before = state_files(disk)
    assert len(before) == (size == 1_000)
    write_checkpoint(disk, DIRECTORY, with_large(whole))
    assert state_files(disk) == before


def test_a_large_state_is_durable_before_its_checkpoint(disk: FaultyFileSystem) -> None:
    disk.sync_directory(DIRECTORY.parent)
    left: list[FaultyFileSystem] = []

    def cut(operation: str, path: Path) -> None:
        if operation == "rename" and path.name == NAME:
            left.append(disk.after_crash(Survival.NONE))

    disk.hook = cut
    write_checkpoint(disk, DIRECTORY, with_large(LARGE))
    assert [state_files(each) for each in left] == [state_files(disk)]


def test_two_owners_may_have_the_same_large_state(disk: FaultyFileSystem) -> None:
    states = {"one": Section(1, LARGE), "two": Section(2, bytes(bytearray(LARGE)))}
    write_checkpoint(disk, DIRECTORY, Checkpoint(9, states=states))
    assert read(disk) == Checkpoint(9, states=states)


@pytest.mark.parametrize("damage", ["a bit", "shorter", "gone"])
def test_a_large_state_that_is_damaged_is_lost_alone(
    disk: FaultyFileSystem, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    write_checkpoint(disk, DIRECTORY, with_large(LARGE))
    (name,) = state_files(disk)
    if damage == "gone":
        disk.unlink(DIRECTORY / name)
    elif damage == "shorter":
        del disk.content(DIRECTORY / name).live[-1:]
    else:
        disk.content(DIRECTORY / name).live[5] ^= 1
    assert read(disk) == FULL
    assert "the state of large is gone or damaged" in caplog.text
    known = read(disk)
    assert known is not None
    remove_lost_states(disk, DIRECTORY, disk.entries(DIRECTORY), known)
    write_checkpoint(disk, DIRECTORY, with_large(LARGE))
    assert read(disk) == with_large(LARGE)


async def test_a_start_removes_states_that_nobody_knows(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    log.register_state("large", lambda: LARGE)
    fill(log, 10)
    log.close()
    kept = state_files(disk)
    write_states(disk, DIRECTORY, {b"of a crash": b"state"})
    assert len(state_files(disk)) == 2
    again = open_log(disk, flusher)
    assert again.register_state("large", lambda: b"").state == LARGE
    assert state_files(disk) == kept
    again.close()


def test_no_bit_may_be_wrong_beside_a_large_state(disk: FaultyFileSystem) -> None:
    write_checkpoint(disk, DIRECTORY, with_large(LARGE))
    data = disk.content(DIRECTORY / NAME).live
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        assert read(disk) is None
        data[bit // 8] ^= 1 << bit % 8
    content = stored(disk)[:-4]
    for size in range(len(content)):
        store(disk, content[:size])
        assert read(disk) is None


def test_more_states_than_a_log_has_are_no_checkpoint(disk: FaultyFileSystem) -> None:
    states = {str(number): Section(0, b"") for number in range(CHECKPOINT_STATES)}
    write_checkpoint(disk, DIRECTORY, Checkpoint(states=states))
    assert read(disk) == Checkpoint(states=states)
    content = bytearray(stored(disk)[:-4])
    struct.pack_into(">H", content, 38, CHECKPOINT_STATES + 1)
    store(disk, content + struct.pack(">BqI", 1, 0, 0) + b"x")
    assert read(disk) is None


def test_a_checkpoint_of_version_1_has_the_state_of_the_producers(disk: FaultyFileSystem) -> None:
    head = struct.pack(">4sHqqqqI", b"PSLC", 1, 90, 40, 1_234, 80, 5)
    store(disk, head + b"state")
    assert read(disk) == Checkpoint(90, 40, 1_234, 0, {"producers": Section(80, b"state")})
    for wrong in (b"stat", b"states"):
        store(disk, head + wrong)
        assert read(disk) is None


async def test_a_log_of_version_1_is_opened_as_it_was_closed(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    batches = fill(log, 30)
    log.close()
    known = read(disk)
    assert known is not None
    content = struct.pack(
        ">4sHqqqqI", b"PSLC", 1, known.offset, known.segment_base, known.position, known.offset, 3
    )
    store(disk, content + b"old")
    again = open_log(disk, flusher)
    assert again.recovery.scanned_bytes == 0
    assert not again.recovery.lost_checkpoint
    assert again.register_state("producers", lambda: b"new") == (b"old", log.end_offset)
    assert again.register_state("others", lambda: b"") == (b"", 0)
    assert await read_all(again) == (batches, [])
    again.close()
    assert read(disk) == Checkpoint(
        *(known.offset, known.segment_base, known.position, 0),
        {"producers": Section(known.offset, b"new"), "others": Section(known.offset, b"")},
    )


async def test_a_state_that_is_too_large_leaves_the_one_before(
    disk: FaultyFileSystem, flusher: Flusher, caplog: pytest.LogCaptureFixture
) -> None:
    states = [b"fits", b"x" * (CHECKPOINT_STATE_BYTES + 1)]
    ends = []
    for state in states:
        log = open_log(disk, flusher)
        log.register_state("large", lambda state=state: state)
        log.register_state("small", lambda: b"small")
        fill(log, 10)
        log.close()
        ends.append(log.end_offset)
    assert "too large" in caplog.text
    again = open_log(disk, flusher)
    assert again.register_state("large", lambda: b"") == (b"fits", ends[0])
    assert again.register_state("small", lambda: b"") == (b"small", ends[1])
    again.close()
