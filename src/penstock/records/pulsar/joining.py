"""Makes chunked Pulsar messages whole in a run of stored batches that another protocol reads.

The whole message stands where its last chunk was, and the other chunks are left out. A reader comes
by the last chunk once, so nothing has to be remembered between runs: chunks that lie before the run
are looked for behind it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock.limits import CHUNK_RUNS, INFLATED_BATCH_BYTES
from penstock.log.header import ATTRIBUTE_CHUNK, Magic, read_header, walk
from penstock.records.errors import MalformedBatchError
from penstock.records.pulsar.chunks import is_chunk, join_chunks

if TYPE_CHECKING:
    from penstock.log.header import BatchHeader
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
    search = _Search()
    for position, header in walk(stored):
        if header.magic != Magic.PULSAR or not header.attributes & ATTRIBUTE_CHUNK:
            continue
        if begin < position:
            yield stored[begin:position]
        begin = position + header.size
        chunk = is_chunk(stored[position:begin])
        if chunk is not None and chunk.chunk == chunk.chunks - 1:
            yield from search.joined(chunk, stored[position:begin])
    if begin < len(stored):
        yield stored[begin:]
    search.report()


class _Search:
    """Looks for the chunks of messages, all of one run, in a bounded number of earlier runs."""

    def __init__(self) -> None:
        self._runs_left = int(CHUNK_RUNS)
        self._incomplete = 0

    def joined(self, last: ChunkInfo, batch: memoryview) -> Joining:
        """Yield the whole message whose last chunk this is, if all of it is found."""
        header = read_header(batch)
        found: dict[int, Buffer] = {}
        for reach in LOOK_BACK_OFFSETS:
            start = max(0, header.base_offset - reach * last.chunks)
            found = yield from self._find(last, start, header)
            if len(found) == last.chunks - 1:
                yield join_chunks([*(found[number] for number in sorted(found)), batch])
                return
            if start == 0:
                break
        self._incomplete += 1
        if self._incomplete == 1:
            logger.warning(
                "the message at offset %d is not complete: %d of its %d chunks are not in the log",
                *(header.base_offset, last.chunks - 1 - len(found), last.chunks),
            )

    def report(self) -> None:
        """Say how many more messages are not complete than the one that was reported."""
        if self._incomplete > 1:
            logger.warning("%d messages behind it are not complete either", self._incomplete - 1)

    def _find(
        self, last: ChunkInfo, start: int, header: BatchHeader
    ) -> Generator[Wanted, Buffer | None, dict[int, Buffer]]:
        """Return chunks of one message by number; of a chunk that was sent again, the later one.

        They are copies, so that a small chunk does not keep all of the run that it was found in.
        """
        found: dict[int, Buffer] = {}
        while start < header.base_offset and self._runs_left:
            self._runs_left -= 1
            run = yield Wanted(start, header.base_offset)
            if run is None:
                break
            for batch, next_offset in _batches(run):
                start = next_offset
                chunk = is_chunk(batch) if batch else None
                if chunk is not None and chunk._replace(chunk=last.chunk) == last != chunk:
                    found[chunk.chunk] = bytes(batch)
            if sum(map(len, found.values())) > INFLATED_BATCH_BYTES:
                reason = f"its chunks have more than {INFLATED_BATCH_BYTES} bytes"
                raise MalformedBatchError(reason, header.base_offset, header.next_offset)
        return found


def _batches(run: Buffer) -> Iterator[tuple[memoryview, int]]:
    """Yield each batch that holds a chunk, and nothing for another, and the offset behind it."""
    view = memoryview(run)
    for position, header in walk(view):
        is_marked = header.magic == Magic.PULSAR and header.attributes & ATTRIBUTE_CHUNK
        yield view[position : position + header.size if is_marked else position], header.next_offset
