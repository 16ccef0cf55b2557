"""What tells whether two sets of events are the same, in whatever order they were seen."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

_SIZE: Final = 16
_MODULUS: Final = 1 << (8 * _SIZE)


@dataclass
class Digest:
    """A count and a sum of hashes: a missing, doubled or changed event changes it."""

    count: int = 0
    total: int = 0

    def add(self, key: bytes, value: bytes) -> None:
        # The key's length goes in first, so that bytes can't move from key to value unseen.
        hashed = blake2b(len(key).to_bytes(4) + key + value, digest_size=_SIZE).digest()
        self.count += 1
        self.total = (self.total + int.from_bytes(hashed)) % _MODULUS

    def __str__(self) -> str:
        return f"{self.total:0{2 * _SIZE}x}"
