"""Message ids and ack sets as Pulsar's clients write them.

An entry's id is (ledger, entry): here the partition's id and the batch's base offset. Two entry ids
are special; both go with a ledger id of the same value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

EARLIEST: Final = (1 << 64) - 1
"""Before the first entry; also the last entry of an empty topic."""
LATEST: Final = (1 << 63) - 1
"""After the last entry."""

_WORD: Final = 64
_WORD_MASK: Final = (1 << _WORD) - 1
_SIGN: Final = 1 << (_WORD - 1)


def mask_from_ack_set(words: Iterable[int]) -> int:
    """Return an ack set's bits as one number: bit i is set while message i is NOT acknowledged."""
    mask = 0
    for index, word in enumerate(words):
        mask |= (word & _WORD_MASK) << (index * _WORD)
    return mask


def ack_set_from_mask(mask: int) -> list[int]:
    """Return the signed 64-bit words of `mask`; zero words at its end are left out."""
    words = []
    while mask:
        word = mask & _WORD_MASK
        words.append(word - (1 << _WORD) if word & _SIGN else word)
        mask >>= _WORD
    return words
