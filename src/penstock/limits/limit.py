"""What a limit is."""

from __future__ import annotations

from typing import Final, Self

KIB: Final = 1024
MIB: Final = 1024 * KIB


class Limit(int):
    """A number with a unit, a reason and a consequence."""

    unit: str
    protects: str
    when_hit: str

    def __new__(cls, value: int, unit: str, *, protects: str, when_hit: str) -> Self:
        limit = super().__new__(cls, value)
        limit.unit = unit
        limit.protects = protects
        limit.when_hit = when_hit
        return limit
