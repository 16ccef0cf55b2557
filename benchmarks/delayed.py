"""What a Shared subscription costs whose messages wait for times at random, beside one without.

Prints the broker's CPU a message in the same run: handed out without a time of its own, put off,
and handed out when all are due at once or at ticks of their own; the memory that waiting ones take
a message, and the longest step on the event loop. Nobody reads a socket.
Usage: python benchmarks/delayed.py [MESSAGES] [--save]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import uvloop

import saved
from penstock import limits, wall_clock
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.subscriptions.consumer import Consumer, Delivery
from penstock.broker.subscriptions.delayed import Delayed
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import Subscription, SubscriptionKind
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.log.header import ATTRIBUTE_DELAYED, Magic, build_header
from penstock.records.pulsar.entry import build_entry
from penstock.records.pulsar.metadata_pb2 import MessageMetadata

PAYLOAD = bytes(100)
WRITTEN_TOGETHER = 5_000
DAY_MS = 86_400_000
EVERYTHING = 1 << 40


class Taker:
    """A consumer that has room for all, and acknowledges at once."""

    takes_files = False

    def __init__(self) -> None:
        self.taken = 0
        self.subscription: Subscription | None = None

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        self.taken += len(deliveries)
        assert self.subscription is not None
        offsets = [each.entry.header.base_offset for each in deliveries]
        asyncio.get_running_loop().call_soon(self.subscription.acknowledge_batches_at_once, offsets)

    async def writable(self) -> None:
        pass

    def activated(self, active: bool) -> None:
        pass

    def reached_end(self) -> None:
        pass

    def disconnect(self) -> None:
        raise AssertionError("the push failed")

    async def is_alive(self) -> bool:
        return True


class LongestStep:
    """Of the CPU time between two passes of the event loop, the most."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = time.thread_time()
        self._handle = asyncio.get_running_loop().call_soon(self._passed)

    def _passed(self) -> None:
        now = time.thread_time()
        self.seconds = max(self.seconds, now - self._began)
        self._began = now
        self._handle = asyncio.get_running_loop().call_soon(self._passed)

    def stop(self) -> float:
        """Return milliseconds."""
        self._handle.cancel()
        return self.seconds * 1_000


async def filled(broker: Broker, name: str, times: Sequence[int]) -> Partition:
    """Write a message for each time at which it is due, of which 0 is none."""
    topic = await broker.topics.create(TopicName("public", "default", name), 1)
    partition = topic.partition(0)
    await partition.opened()
    for number, due in enumerate(times):
        about = MessageMetadata(producer_name="p", sequence_id=number, publish_time=1)
        if due:
            about.deliver_at_time = due
        body = build_entry(about, PAYLOAD)
        attributes = ATTRIBUTE_DELAYED if due else 0
        header = build_header(
            *(Magic.PULSAR, body),
            record_count=1,
            base_timestamp=1,
            max_timestamp=1,
            attributes=attributes,
        )
        partition.append([header, body])
        if number % WRITTEN_TOGETHER == 0:
            await partition.flushed()
    await partition.flushed()
    return partition


async def subscribed(broker: Broker, partition: Partition) -> tuple[Subscription, Taker]:
    taker = Taker()
    request = SubscribeRequest(name="s", kind=SubscriptionKind.SHARED, position=0)
    member = Consumer(taker, "taker")
    taker.subscription = await broker.subscriptions.subscribe(partition, request, member)
    taker.subscription.add_permits(member, EVERYTHING)
    return taker.subscription, taker


class Meter:
    """Measures microseconds of CPU a message or, `by_steps`, milliseconds of the longest step: to
    look at each pass of the loop costs more than what most of them do.
    """

    def __init__(self, *, by_steps: bool) -> None:
        self._by_steps = by_steps
        self.numbers: dict[str, float] = {}

    async def measure(self, name: str, count: int, until: Callable[[], bool]) -> None:
        step = LongestStep() if self._by_steps else None
        began = time.process_time()
        while not until():  # noqa: ASYNC110  # it winds a clock
            await asyncio.sleep(0.01)
        if step is None:
            self.numbers[f"{name} us"] = (time.process_time() - began) * 1e6 / count
        else:
            self.numbers[f"{name} step ms"] = step.stop()


async def measured(count: int, folder: Path, *, by_steps: bool) -> dict[str, float]:
    meter = Meter(by_steps=by_steps)
    broker = await Broker.open(folder, BrokerSettings())
    plain = await filled(broker, "plain", [0] * count)
    _, taker = await subscribed(broker, plain)
    await meter.measure("plain", count, lambda: taker.taken == count)
    now = wall_clock.now_ms()
    shuffled = random.Random(1)
    times = [now + DAY_MS + shuffled.randrange(DAY_MS) for _ in range(count)]
    together = [now + DAY_MS if number % 2 else 0 for number in range(2 * count)]
    await wait_and_come(broker, meter, "in one tick", together, 2 * DAY_MS)
    await wait_and_come(broker, meter, "by ticks", times, DAY_MS // 2_000)
    await broker.close()
    return meter.numbers


async def wait_and_come(
    broker: Broker, meter: Meter, name: str, times: Sequence[int], wind_ms: int
) -> None:
    partition = await filled(broker, name, times)
    count = sum(1 for due in times if due)
    subscription, taker = await subscribed(broker, partition)
    waiting = subscription._engine.delayed
    await meter.measure(f"put off {name}", len(times), lambda: len(waiting) == count)
    real, wound = wall_clock.now_ms, min(filter(None, times))
    wall_clock.now_ms = lambda: wound

    def all_came() -> bool:
        nonlocal wound
        wound += wind_ms
        return taker.taken == len(times)

    await meter.measure(f"due {name}", count, all_came)
    wall_clock.now_ms = real


def bytes_a_message(count: int) -> float:
    times = [random.randrange(DAY_MS) for _ in range(count)]
    tracemalloc.start()
    delayed = Delayed()
    for offset, due in enumerate(times):
        delayed.add(due, offset, offset + 1)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("messages", type=int, nargs="?", default=200_000)
    saved.add_flag(parser)
    options = parser.parse_args()
    gc.disable()  # As a broker, which collects when it is for others to wait.
    assert options.messages <= limits.DELAYED_RUNS
    numbers: dict[str, float] = {}
    for by_steps in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            numbers |= uvloop.run(measured(options.messages, Path(folder), by_steps=by_steps))
    numbers["bytes a message"] = bytes_a_message(min(options.messages, 200_000))
    for name, number in numbers.items():
        print(f"{name:>28}: {number:8.2f}")
    saved.compare("delayed", numbers, save=options.save)


if __name__ == "__main__":
    main()
