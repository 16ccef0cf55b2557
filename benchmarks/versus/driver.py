"""The load generator's process: runs one order and says what it came to.

Speaks lines of JSON on standard output: `begin` when the load begins, then `end` or `failed`.
What else is printed, as clients' libraries do, goes to standard error.
An order for a first message waits for a line on standard input before it connects, so that the
time to load this program is not counted.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import psutil

from versus.loads import Kind
from versus.order import Done, Order
from versus.percentiles import summary_ms

if TYPE_CHECKING:
    from versus.clients.client import Client

CLIENTS: Final = {
    "kafka": ("versus.clients.kafka", "KafkaClient"),
    "pulsar": ("versus.clients.pulsar", "PulsarClient"),
    "iggy": ("versus.clients.iggy", "IggyLoad"),
}


class OwnUse:
    """What this process takes from the processor between two looks."""

    def __init__(self) -> None:
        self._before = self._look()
        self._began = time.perf_counter()

    def since(self) -> dict[str, float]:
        """CPU seconds of all threads and of the busiest one, and the seconds that passed."""
        total, threads = self._look()
        before_total, before_threads = self._before
        busiest = max(spent - before_threads.get(thread, 0.0) for thread, spent in threads.items())
        return {
            "cpu_seconds": total - before_total,
            "busiest_thread_seconds": busiest,
            "seconds": time.perf_counter() - self._began,
        }

    def _look(self) -> tuple[float, dict[int, float]]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        threads = psutil.Process().threads()
        each = {thread.id: thread.user_time + thread.system_time for thread in threads}
        return usage.ru_utime + usage.ru_stime, each


_told: Final = os.fdopen(os.dup(sys.stdout.fileno()), "w")


def main() -> None:
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    order = Order.from_json(sys.argv[1])
    try:
        ended = run(client_for(order), order)
    except Exception as error:  # whatever went wrong is this load's result
        tell(event="failed", reason=f"{type(error).__name__}: {error}"[:300])
    else:
        tell(event="end", **ended)
    # Clients that can't reach a broker may wait in their destructors for a long time.
    os._exit(0)


def client_for(order: Order) -> Client:
    module, name = CLIENTS[order.protocol]
    client: Client = getattr(importlib.import_module(module), name)(order)
    return client


def run(client: Client, order: Order) -> dict[str, Any]:
    if order.kind is Kind.START:
        tell(event="begin")
        sys.stdin.readline()
        client.first()
        return {"messages": 1}
    use: list[OwnUse] = []

    def begin() -> float:
        use.append(OwnUse())
        tell(event="begin")
        return time.perf_counter()

    done = action(client, order.kind)(begin)
    return outcome(done, use[0].since())


def action(client: Client, kind: Kind) -> Any:
    return {
        Kind.PRODUCE: client.produce,
        Kind.AMID: client.produce,
        Kind.CONSUME: client.consume,
        Kind.FOREIGN: client.consume,
        Kind.CATCH_UP: client.consume,
        Kind.REQUESTS: client.requests,
        Kind.PUBLISH: client.publish,
        Kind.END_TO_END: client.end_to_end,
        Kind.MANY: client.many,
        Kind.TRANSACTIONS: client.transactions,
    }[kind]


def outcome(done: Done, use: dict[str, float]) -> dict[str, Any]:
    told: dict[str, Any] = {"messages": done.messages, "load_seconds": done.seconds, **done.extra}
    if done.latencies_ns:
        told["latency_ms"] = summary_ms(done.latencies_ns)
    return told | {f"client_{name}": spent for name, spent in use.items()}


def tell(**line: Any) -> None:
    print(json.dumps(line), file=_told, flush=True)


if __name__ == "__main__":
    main()
