"""States of a log's owners that are kept as they are, in pieces, so that nobody puts many megabytes
together on the event loop, nor keeps them twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CHUNK_PIECES: Final = 256
"""Pieces that are handed out as one: to take each by itself is more work than to put it down."""


class Pieces:
    """What a state is made of, one piece behind the other; none is ever changed."""

    __slots__ = ("_pieces", "_size")

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        self._size = sum(map(len, pieces))

    def __len__(self) -> int:
        """How many bytes they are."""
        return self._size

    def __bytes__(self) -> bytes:
        return b"".join(self._pieces)

    def chunks(self) -> Iterator[bytes]:
        """Yield all there is, put together a few at a time."""
        for at in range(0, len(self._pieces), _CHUNK_PIECES):
            yield b"".join(self._pieces[at : at + _CHUNK_PIECES])


State: TypeAlias = bytes | Pieces


def chunks_of(state: State) -> Iterator[bytes]:
    """Yield a state, in a few steps where it is much."""
    if isinstance(state, bytes):
        yield state
    else:
        yield from state.chunks()
