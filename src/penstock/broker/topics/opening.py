"""Logs that are not open yet: what asks them, and having many opened at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, cast

from penstock.limits import LOGS_OPENED_TOGETHER
from penstock.log.errors import LogNotOpenError
from penstock.pace import Pace
from penstock.slow_steps import waiting_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.log import Log


class Openable(Protocol):
    """A partition, as far as it matters here."""

    is_open: bool

    async def opened(self) -> None: ...


class _Unopened:
    """Stands in a log's place, so that what uses an open one has nothing to check."""

    def __getattr__(self, name: str) -> NoReturn:
        raise LogNotOpenError(f"{name} was asked of a log that is not open")


_UNOPENED: Final = cast("Log", _Unopened())


def unopened() -> Log:
    """Return a log of which everything raises LogNotOpenError."""
    return _UNOPENED


async def open_all(partitions: Iterable[Openable]) -> None:
    """Return when each of them is open, or can't be opened, which whoever uses it meets then."""
    pace = Pace()
    found: dict[Openable, None] = {}
    for partition in partitions:
        if not partition.is_open:
            found[partition] = None
        if pace.is_over():
            await pace.others()
    closed = list(found)
    with waiting_for("opening %d logs", len(closed)):
        for first in range(0, len(closed), LOGS_OPENED_TOGETHER):
            together = closed[first : first + LOGS_OPENED_TOGETHER]
            await asyncio.gather(*(each.opened() for each in together), return_exceptions=True)
