"""How much logs hold that nobody uses: looked up in their folders, and left closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.limits import LOGS_MEASURED_TOGETHER
from penstock.pace import Pace
from penstock.slow_steps import waiting_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.storage import Storage


async def measure_all(storage: Storage, partitions: Iterable[Partition]) -> None:
    """Return when each partition has a summary, but for those of which the log can't be read.

    What was found is kept until the log is opened: a log that is closed does not change.
    """
    pace = Pace()
    unknown: dict[Partition, None] = {}
    for partition in partitions:
        if partition.summary is None:
            unknown[partition] = None
        if pace.is_over():
            await pace.others()
    left = list(unknown)
    with waiting_for("looking at %d logs", len(left)):
        for first in range(0, len(left), LOGS_MEASURED_TOGETHER):
            together = left[first : first + LOGS_MEASURED_TOGETHER]
            found = await storage.summaries([(each.topic.id, each.index) for each in together])
            for partition, summary in zip(together, found, strict=True):
                if not partition.is_open:
                    partition.found = summary
