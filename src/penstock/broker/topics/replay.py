"""Bringing back what a partition remembers of its batches: from checkpoint and headers."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, Protocol

from penstock.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.log import Log
    from penstock.log.header import BatchHeader
    from penstock.log.pieces import State
    from penstock.session import Buffer

_TOGETHER: Final = 512
"""Headers that are taken in at a stretch: about a millisecond."""

logger = logging.getLogger(__name__)


class BatchState(Protocol):
    """A state that is a function of the batches in a log: of their headers, and of what control
    batches say.
    """

    def update(self, header: BatchHeader, batch: Buffer) -> None:
        """Take one more batch into account, which carries its offset."""

    def snapshot(self) -> State:
        """Return the state for `restore`."""

    def restore(self, snapshot: bytes) -> Iterable[None]:
        """Replace the state by a snapshot's, or by that of an empty log, which is b"", once all of
        the steps that it returns were taken: of millions each is a small part.

        Raises ValueError for bytes that can't be one, then or in a step, and changes nothing.
        """


async def replay(log: Log, states: Mapping[str, BatchState], log_name: str) -> None:
    """Restore states by the names they have in the log's checkpoint, and bring them up to date.

    The log keeps them from now on. Each batch is read once for all. Raises what Log.headers does.
    """
    replay_from = {
        name: await _restored(log, name, state, log_name) for name, state in states.items()
    }
    start = min(replay_from.values(), default=log.end_offset)
    count = 0
    async with aclosing(log.batches(start, log.written_offset)) as batches:
        async for header, batch in batches:
            count += 1
            if count % _TOGETHER == 0:
                await asyncio.sleep(0)  # Others are served while a log is opened.
            for name, state in states.items():
                if header.next_offset > replay_from[name]:
                    state.update(header, batch)


async def _restored(log: Log, name: str, state: BatchState, log_name: str) -> int:
    """Restore a state, and return the first offset that it knows nothing of."""
    saved = log.register_state(name, state.snapshot)
    try:
        await Pace().through(state.restore(saved.state))
    except ValueError as error:
        logger.warning("%s: read from its beginning, for %s", log_name, error)
        return log.start_offset
    return saved.replay_from
