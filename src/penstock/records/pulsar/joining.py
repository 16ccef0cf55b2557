"""Makes chunked Pulsar messages whole in a run of stored batches that another protocol reads.

The whole message stands where its last chunk was, and the other chunks are left out. A reader comes
by the last chunk once, so nothing has to be remembered between runs: chunks that lie before the run
are looked for behind it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

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

logger = logging.getLogger(__name__)


def join_messages(stored: memoryview, earlier: Earlier) -> Iterator[Buffer]:
    """Yield `stored` in pieces, chunked messages whole; all of it at once where there are none.

    A last chunk whose message is not complete in the log is left out, with a logged warning.
    Raises MalformedBatchError.
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
            yield from _joined(chunk, header.base_offset, stored[position:begin], earlier)
    if begin < len(stored):
        yield stored[begin:]


def _joined(
    chunk: ChunkInfo, last_offset: int, last: memoryview, earlier: Earlier
) -> Iterator[Buffer]:
    found: dict[int, Buffer] = {}
    for reach in LOOK_BACK_OFFSETS:
        start = max(0, last_offset - reach * chunk.chunks)
        found = _find(chunk, earlier(start, last_offset))
        if len(found) == chunk.chunks - 1:
            yield join_chunks([*(found[number] for number in sorted(found)), last])
            return
        if start == 0:
            break
    logger.warning(
        "the message at offset %d is not complete: %d of its %d chunks are not in the log",
        *(last_offset, chunk.chunks - 1 - len(found), chunk.chunks),
    )


def _find(last: ChunkInfo, runs: Iterable[Buffer]) -> dict[int, Buffer]:
    """Return the chunks of one message by number; of a chunk that was sent again, the later one."""
    found: dict[int, Buffer] = {}
    for run in runs:
        view = memoryview(run)
        for position, header in walk(view):
            if header.magic != Magic.PULSAR or not header.attributes & ATTRIBUTE_CHUNK:
                continue
            batch = view[position : position + header.size]
            chunk = is_chunk(batch)
            if chunk is not None and chunk._replace(chunk=last.chunk) == last != chunk:
                found[chunk.chunk] = batch
    return found
