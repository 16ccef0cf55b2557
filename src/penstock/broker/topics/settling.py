"""Waiting until readers see what was answered before it was safe."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.limits import SETTLING_SECONDS
from penstock.pace import Pace
from penstock.session import Signal, ended

if TYPE_CHECKING:
    from collections.abc import Collection

    from penstock.broker.topics.partition import Partition
    from penstock.log.interface import Outcome


async def settled(partitions: Collection[Partition]) -> None:
    """Return when all that was appended by now is safe, or has failed, or takes too long.

    Who produces with acks 0 or 1 is answered first, and expects to find the end of the log behind
    what they sent. What fails or takes longer readers do not see, as ever.
    """
    asked = await Pace().each(partitions, _settling)
    unsafe = {outcome for outcome in asked if outcome is not None}
    if not unsafe:
        return
    over = Signal()

    def known(outcome: Outcome) -> None:
        unsafe.remove(outcome)
        if not unsafe:
            over.set()

    timer = asyncio.get_running_loop().call_later(SETTLING_SECONDS, over.set)
    for outcome in tuple(unsafe):
        outcome.add_done_callback(known)
    await ended(over)
    timer.cancel()


def _settling(partition: Partition) -> Outcome | None:
    """Have a partition's messages made safe; None where they are, and where it is not open."""
    if not partition.is_open or partition.safe_offset >= partition.end_offset:
        return None
    return partition.durable(partition.end_offset - 1)
