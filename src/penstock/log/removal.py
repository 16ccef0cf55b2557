"""The files of segments that were trimmed: they go at once, or stay for a while."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.log.segments import remove_segments
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.log.commit import Flusher
    from penstock.log.files import FileSystem
    from penstock.log.segment import Segment

_LONGEST_SECONDS: Final = 30 * 86_400
"""A loop can't time every delay that can be set; a later one comes to an end with the process."""


class Removal:
    """Removes the files of one log. What it did not come to goes with the next start."""

    def __init__(self, files: FileSystem, flusher: Flusher) -> None:
        self._files = files
        self._flusher = flusher
        self._timers: set[asyncio.TimerHandle] = set()
        self._tasks = Tasks()

    async def remove(self, segments: Sequence[Segment], delay_ms: int) -> None:
        """Return when the files are gone, or are to go after the delay."""
        if not segments:
            return
        if not delay_ms:
            await self._remove(segments)
            return
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle

        def due() -> None:
            self._timers.discard(timer)
            self._tasks.start(self._remove(segments), "removing trimmed segments")

        timer = loop.call_later(min(delay_ms / 1000, _LONGEST_SECONDS), due)
        self._timers.add(timer)

    def close(self) -> None:
        """Leave the rest to the next start."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    async def _remove(self, segments: Sequence[Segment]) -> None:
        await self._flusher.run(partial(remove_segments, self._files, segments))
