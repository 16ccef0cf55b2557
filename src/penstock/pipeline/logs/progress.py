"""How far a long run is, looked at beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from penstock.clients.kafka.client import KafkaError

INTERVAL_SECONDS: Final = 0.5

Report: TypeAlias = Callable[[int, int], None]
"""Called with how many offsets are done, and how many there are."""


@contextmanager
def reported(done: Callable[[], int], total: int, report: Report) -> Iterator[None]:
    """Report until the block ends, from a thread; what can't be looked at now is not reported."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(INTERVAL_SECONDS):
            try:
                report(done(), total)
            except (OSError, KafkaError):
                continue

    thread = threading.Thread(target=look, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    report(total, total)
