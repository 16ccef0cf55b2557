"""Places in a partition as a person names them: start, end, N, -N for N before the end, @TIME."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from penstock.cli.failure import UsageError

_TIME_MS_MAX: Final = (1 << 63) - 1


def offset_of(text: str, option: str, first: int, end: int) -> int:
    """Return the offset of any place but a time; it may lie outside. Raises UsageError."""
    if text in {"start", "end"}:
        return first if text == "start" else end
    try:
        number = int(text)
    except ValueError:
        raise UsageError(
            f'{option}: "{text}" is refused; what is needed is start, end, N, -N or @TIME'
        ) from None
    return end + number if number < 0 else number


def time_of(text: str, option: str) -> int:
    """Return the milliseconds since 1970 of @TIME. Raises UsageError."""
    time = text.removeprefix("@")
    if time.isascii() and time.isdigit() and len(time) < 20:
        return min(int(time), _TIME_MS_MAX)
    try:
        return round(datetime.fromisoformat(time).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise UsageError(
            f'{option}: "{text}" is refused; what is needed is @2026-01-31T12:00:00Z or @ and '
            "milliseconds since 1970"
        ) from None
