"""What owners of state are told after a start: each header that they don't know, once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from faulty_files import FaultyFileSystem
from penstock import pace
from penstock.broker.topics.replay import BatchState, replay
from penstock.log import Flusher, LocalLog, LogConfig
from penstock.log.header import BatchHeader, Magic, build_header, read_header
from penstock.session import Buffer


class Seen:
    """The base offsets of all batches that it was shown."""

    def __init__(self) -> None:
        self.offsets: list[int] = []

    def update(self, header: BatchHeader, _batch: Buffer) -> None:
        self.offsets.append(header.base_offset)

    def snapshot(self) -> bytes:
        return bytes(self.offsets)

    def restore(self, snapshot: bytes) -> Iterator[None]:
        if b"\xff" in snapshot:
            raise ValueError("not mine")
        yield
        self.offsets = list(snapshot)


class Broken(Seen):
    def snapshot(self) -> bytes:
        return b"\xff"


@pytest.fixture
def flusher() -> Iterator[Flusher]:
    flusher = Flusher(threads=1)
    yield flusher
    flusher.close()


async def test_each_state_is_shown_what_it_does_not_know(flusher: Flusher) -> None:
    disk = FaultyFileSystem()
    written: list[int] = []

    async def start(states: dict[str, BatchState]) -> LocalLog:
        log = LocalLog.open(Path("/data/0"), LogConfig(), disk, flusher)
        await replay(log, states, "t-0")
        return log

    def write(log: LocalLog, *seen: Seen) -> None:
        for _ in range(5):
            header = build_header(
                Magic.KAFKA, b"", record_count=2, base_timestamp=0, max_timestamp=0
            )
            written.append(log.append([header], read_header(header)))
            for each in seen:
                each.update(read_header(header), header)

    old, broken = Seen(), Broken()
    log = await start({"old": old, "broken": broken})
    write(log, old, broken)
    log.close()
    late = Seen()
    log = await start({"late": late})  # The others sit this start out.
    assert late.offsets == written
    write(log, late)
    log.close()
    old, late, broken, new = Seen(), Seen(), Broken(), Seen()
    log = await start({"new": new, "old": old, "late": late, "broken": broken})
    assert old.offsets == late.offsets == broken.offsets == new.offsets == written
    log.close()
    again = Seen()
    log = await start({"old": again})
    await log.trim(5)
    assert again.offsets == written
    log.close()
    fresh = Seen()
    log = await start({"fresh": fresh})
    assert fresh.offsets == [offset for offset in written if offset + 2 > 5]
    log.close()


class Long(Seen):
    """One that is restored in very many steps."""

    def restore(self, snapshot: bytes) -> Iterator[None]:
        yield from (None for _ in range(100))
        yield from super().restore(snapshot)


async def test_others_have_their_turns_while_much_is_restored(
    flusher: Flusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "_STEP_SECONDS", 0)
    log = LocalLog.open(Path("/data/0"), LogConfig(), FaultyFileSystem(), flusher)
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        asyncio.get_running_loop().call_soon(turn)

    turn()
    await replay(log, {"long": Long()}, "t-0")
    assert turns > 20
    log.close()
