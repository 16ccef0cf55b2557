"""Leaving batches out of full segments of a log, as compaction does."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.log import Log
from penstock.log.header import BatchHeader, Magic, build_header, read_header, stamp, walk
from penstock.log.interface import Rewriting


def gap(start: int, end: int, leader_epoch: int = 0) -> bytes:
    """Return a batch without records in the place of offsets."""
    header = build_header(
        Magic.KAFKA,
        b"",
        record_count=0,
        base_timestamp=-1,
        max_timestamp=-1,
        last_offset_delta=end - start - 1,
    )
    stamp(header, start, leader_epoch)
    return bytes(header)


def without(batches: Iterable[bytes], is_kept: Callable[[BatchHeader], bool]) -> list[bytes]:
    """Return what is left of batches, with one gap for those that are left out side by side."""
    left: list[bytes] = []
    missing: tuple[int, int] | None = None
    for batch in batches:
        header = read_header(batch)
        if not is_kept(header):
            missing = (missing[0] if missing else header.base_offset, header.next_offset)
            continue
        if missing is not None:
            left.append(gap(*missing))
            missing = None
        left.append(batch)
    return left if missing is None else [*left, gap(*missing)]


def write_without(
    rewriting: Rewriting, is_kept: Callable[[BatchHeader], bool], chunk_bytes: int = 500
) -> list[bytes]:
    """Write segments anew, some batches left out, and return what is in the new one."""
    found = [
        bytes(chunk[at : at + header.size])
        for chunk in rewriting.batches(chunk_bytes)
        for at, header in walk(chunk)
    ]
    left = without(found, is_kept)
    for batch in left:
        header = read_header(batch)
        rewriting.write(batch, [0], [header.last_offset], [header.max_timestamp])
    rewriting.seal()
    return left


async def leave_out(
    log: Log, start: int, end: int, is_kept: Callable[[BatchHeader], bool]
) -> list[bytes]:
    """Replace full segments by what is left of them."""
    rewriting = await log.rewriting(start, end)
    assert rewriting is not None
    left = write_without(rewriting, is_kept)
    assert await log.replace(rewriting)
    return left
