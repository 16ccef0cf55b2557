"""Makes chunked Pulsar messages whole in a run of stored batches that another protocol reads.

The whole message stands where its last chunk was, and the other chunks are left out. A reader comes
by the last chunk once, so nothing has to be remembered between runs: chunks that lie before the run
are looked for behind it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock.log.header import ATTRIBUTE_CHUNK, Magic, walk
from penstock.records.pulsar.chunks import is_chunk, join_chunks

if TYPE_CHECKING:
    from penstock.records.pulsar.chunks import ChunkInfo
    from penstock.session import Buffer

LOOK_BACK_OFFSETS: Final = (64, 4_096, 262_144)
"""How far behind a last chunk the first one is looked for, in offsets a chunk, one try after the
other: chunks of one message mostly lie side by side, but other producers may write in between."""

Earlier: TypeAlias = "Callable[[int, int], Iterable[Buffer]]"
"""Returns runs of whole stored batches that hold the offsets from the first up to the second."""


class Wanted(NamedTuple):
    """Stored batches to look for chunks in: a run that holds what comes first from `start` on.

    There is none where nothing is left below `end`.
    """

    start: int
    end: int


Joining: TypeAlias = "Generator[Buffer | Wanted, Buffer | None, None]"

logger = logging.getLogger(__name__)


def join_messages(stored: memoryview, earlier: Earlier) -> Iterator[Buffer]:
    """Yield `stored` in pieces, chunked messages whole; all of it at once where there are none.

    A last chunk whose message is not complete in the log is left out, with a logged warning.
    Raises MalformedBatchError.
    """
    joining = join_in_steps(stored)
    step = next(joining, None)
    while step is not None:
        if isinstance(step, Wanted):
            step = _answer(joining, next(iter(earlier(*step)), None))
        else:
            yield step
            step = next(joining, None)


def _answer(joining: Joining, run: Buffer | None) -> Buffer | Wanted | None:
    try:
        return joining.send(run)
    except StopIteration:
        return None


def join_in_steps(stored: memoryview) -> Joining:
    """Do as `join_messages`, for a caller that reads by itself.

    Where a `Wanted` is yielded instead of a piece, the run that it speaks of is to be sent, or None
    where there is none.
    """
    begin = 0
    for position, header in walk(stored):
        if header.magic != Magic.PULSAR or not header.attributes & ATTRIBUTE_CHUNK:
            continue
        if begin < position:
            yield stored[begin:position]
        begin = position + header.size
        chunk = is_chunk(stored[position:begin])
        if chunk is not None and chunk.chunk == chunk.chunks - 1:
            yield from _joined(chunk, header.base_offset, stored[position:begin])
    if begin < len(stored):
        yield stored[begin:]


def _joined(chunk: ChunkInfo, last_offset: int, last: memoryview) -> Joining:
    found: dict[int, Buffer] = {}
    for reach in LOOK_BACK_OFFSETS:
        start = max(0, last_offset - reach * chunk.chunks)
        found = yield from _find(chunk, start, last_offset)
        if len(found) == chunk.chunks - 1:
            yield join_chunks([*(found[number] for number in sorted(found)), last])
            return
        if start == 0:
            break
    logger.warning(
        "the message at offset %d is not complete: %d of its %d chunks are not in the log",
        *(last_offset, chunk.chunks - 1 - len(found), chunk.chunks),
    )


def _find(
    last: ChunkInfo, start: int, end: int
) -> Generator[Wanted, Buffer | None, dict[int, Buffer]]:
    """Return the chunks of one message by number; of a chunk that was sent again, the later one."""
    found: dict[int, Buffer] = {}
    while start < end and (run := (yield Wanted(start, end))) is not None:
        view = memoryview(run)
        for position, header in walk(view):
            start = header.next_offset
            if header.magic != Magic.PULSAR or not header.attributes & ATTRIBUTE_CHUNK:
                continue
            batch = view[position : position + header.size]
            chunk = is_chunk(batch)
            if chunk is not None and chunk._replace(chunk=last.chunk) == last != chunk:
                found[chunk.chunk] = batch
    return found
