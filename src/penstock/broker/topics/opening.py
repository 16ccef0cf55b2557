"""Logs that are not open yet: what asks them, and having many opened at a time."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, cast

from penstock.limits import LOG_OPEN_RETRY_SECONDS, LOGS_OPENED_TOGETHER
from penstock.log.errors import LogError, LogNotOpenError
from penstock.metadata.errors import MetadataError
from penstock.pace import Pace
from penstock.slow_steps import waiting_for
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from penstock.log import Log

logger = logging.getLogger(__name__)


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


class Opening:
    """Has a log opened once for all who need it, and anew a moment after that failed."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    async def tried(self, open_log: Callable[[], Awaitable[None]], name: str) -> None:
        """Return when it was tried. `open_log` raises LogError, MetadataError and OSError; log
        lines call what it opens `name`.
        """
        if self._task is None:
            self._task = Tasks().start(self._try(open_log, name), f"opening {name}")
        # Not awaited itself: a waiter that is cancelled leaves it to the others.
        await asyncio.wait([self._task])

    async def ended(self) -> None:
        """Return when no attempt is under way."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def again(self) -> None:
        """Have it tried anew for whoever comes next."""
        self._task = None

    async def _try(self, open_log: Callable[[], Awaitable[None]], name: str) -> None:
        try:
            await open_log()
        except (LogError, MetadataError, OSError) as error:
            logger.error("%s can't be opened: %s", name, error)  # noqa: TRY400
            asyncio.get_running_loop().call_later(LOG_OPEN_RETRY_SECONDS, self.again)


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
