"""The uncompressed bodies of a run, kept behind its stored bytes."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.records.arena import Arena
from penstock.records.columns import Bytes
from penstock.records.errors import OverLimitError


@dataclass(slots=True)
class Inflation:
    """Takes what was inflated, up to `limit` bytes of a run together."""

    data: Bytes
    limit: int
    _arena: Arena
    left: int
    """Bytes that may be added."""

    @classmethod
    def behind(cls, data: Bytes, limit: int) -> Inflation:
        return cls(data, limit, Arena.behind(data), limit)

    def add(self, inflated: Bytes) -> tuple[int, int]:
        """Return where it starts and ends in the buffer of all. Raises OverLimitError."""
        self.left -= len(inflated)
        if self.left < 0:
            raise OverLimitError(f"more than {self.limit} bytes of inflated batches")
        start = self._arena.add(inflated)
        return start, start + len(inflated)

    def join(self) -> Bytes:
        """Return the stored bytes and behind them all that was added."""
        return self._arena.join()
