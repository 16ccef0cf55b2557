"""Message ids and ack sets as Pulsar's clients write them.

An entry's id is (ledger, entry): here the partition's id and the batch's base offset. Two entry ids
are special; both go with a ledger id of the same value.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from penstock.limits import PULSAR_ACK_SET_WORDS
from penstock.session import PeerError

if TYPE_CHECKING:
    from collections.abc import Collection

EARLIEST: Final = (1 << 64) - 1
"""Before the first entry; also the last entry of an empty topic."""
LATEST: Final = (1 << 63) - 1
"""After the last entry."""

_WORD_BYTES: Final = 8


def mask_from_ack_set(words: Collection[int]) -> int:
    """Return an ack set's bits as one number: bit i is set while message i is NOT acknowledged.

    Raises PeerError where it has too many words.
    """
    if len(words) > PULSAR_ACK_SET_WORDS:
        raise PeerError(f"an ack set has {len(words)} words and {PULSAR_ACK_SET_WORDS} are allowed")
    # By way of bytes, for a client may send very many words, and shifting each is quadratic.
    return int.from_bytes(struct.pack(f"<{len(words)}q", *words), "little")


def ack_set_from_mask(mask: int) -> list[int]:
    """Return the signed 64-bit words of `mask`; zero words at its end are left out."""
    count = -(-mask.bit_length() // (8 * _WORD_BYTES))
    return list(struct.unpack(f"<{count}q", mask.to_bytes(count * _WORD_BYTES, "little")))
