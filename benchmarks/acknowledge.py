"""What acknowledgements of single messages cost, by the order that they come in.

Prints acknowledgements a second of CPU, the cursor's bytes a message at the worst moment, what is
stored when every second message is acknowledged, and how long a hole takes to close below many.
Usage: python benchmarks/acknowledge.py [MESSAGES]
"""

from __future__ import annotations

import random
import sys
import time
import tracemalloc
from collections.abc import Sequence

from penstock.broker.subscriptions.bitmaps import BLOCK
from penstock.broker.subscriptions.cursor import Cursor
from penstock.broker.subscriptions.engine import Engine
from penstock.broker.subscriptions.leases import Holder
from penstock.memory import Memory

BATCH = 100
"""Messages in a batch, which is one lease."""


def orders(count: int) -> dict[str, Sequence[int]]:
    shuffled = list(range(count))
    random.Random(1).shuffle(shuffled)
    every_second = [*range(1, count, 2), *reversed(range(0, count, 2))]
    return {"in order": range(count), "every second": every_second, "random": shuffled}


def acknowledge(engine: Engine, order: Sequence[int]) -> float:
    started = time.thread_time()
    for offset in order:
        engine.acknowledge(offset, offset + 1)
    return time.thread_time() - started


def leased(count: int) -> Engine:
    """All messages out with one holder."""
    engine = Engine(Cursor(0), lambda: None, Memory().subscriptions)
    holder = Holder("benchmark")
    for start in range(0, count, BATCH):
        engine.acquire(holder, start, min(start + BATCH, count))
    return engine


def bytes_used(order: Sequence[int]) -> int:
    tracemalloc.start()
    cursor = Cursor(0)
    for offset in order:
        cursor.acknowledge(offset, offset + 1)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def main(count: int) -> None:
    for name, order in orders(count).items():
        engine = leased(count)
        seconds = acknowledge(engine, order)
        assert (engine.cursor.position, len(engine.leases)) == (count, 0)
        used = bytes_used(order) / count
        print(f"{name:>12}: {count / seconds:>9,.0f}/s, {used:.2f} bytes a message")
    cursor = Cursor(0)
    for offset in range(1, count, 2):
        cursor.acknowledge(offset, offset + 1)
    started = time.thread_time()
    stored = len(cursor.take_changes().blocks) * BLOCK // 8
    milliseconds = (time.thread_time() - started) * 1000
    print(f"{'stored':>12}: {stored / count:.2f} bytes a message, in {milliseconds:.1f} ms")
    cursor.reset(0)
    cursor.acknowledge(1, 100 * count)
    started = time.thread_time()
    cursor.acknowledge(0, 1)
    milliseconds = (time.thread_time() - started) * 1000
    print(f"{'a hole':>12}: closed below {100 * count:,} in {milliseconds:.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 900_000)
