"""Looking after the files of open logs: what is removed under a running broker is noticed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from penstock.limits import FOLDER_CHECK_SECONDS
from penstock.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from penstock.broker.topics.partition import Partition

_TOGETHER: Final = 100


async def watch_files(partitions: Callable[[], Iterable[Partition]]) -> None:
    """Close, for ever, each log of which a file is gone. `partitions` returns those there are."""
    lost: set[int] = set()
    while True:
        await asyncio.sleep(FOLDER_CHECK_SECONDS)
        pace = Pace()
        open_ones = []
        for each in partitions():
            if each.is_open and each.id not in lost:
                open_ones.append(each)
            if pace.is_over():
                await pace.others()
        for first in range(0, len(open_ones), _TOGETHER):
            lost |= await _check(open_ones[first : first + _TOGETHER])


async def _check(partitions: Sequence[Partition]) -> set[int]:
    """Close those of which a file is gone; return their ids."""
    expected = [(partition, partition.files) for partition in partitions]
    missing = await asyncio.to_thread(_missing, [files for _, files in expected])
    lost = set()
    for (partition, _), file in zip(expected, missing, strict=True):
        # It may have been trimmed away, or deleted, while it was looked for.
        if file is not None and file in partition.files:
            partition.lose(file)
            lost.add(partition.id)
    return lost


def _missing(expected: Sequence[Sequence[Path]]) -> list[Path | None]:
    return [next((file for file in files if not file.exists()), None) for files in expected]
