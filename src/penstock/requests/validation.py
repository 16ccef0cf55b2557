"""Looking into what producers send without keeping the event loop, or one another, from work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakKeyDictionary

from penstock import records
from penstock.fair_threads import FairThreads
from penstock.letting_go import letting_go
from penstock.limits import LOOKS_OF_MEDIUM_BYTES, LOOKS_OF_SMALL_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.broker.broker import Broker
    from penstock.requests.call import Client

_threads: Final[WeakKeyDictionary[Broker, FairThreads]] = WeakKeyDictionary()
_Result = TypeVar("_Result")


async def in_thread(
    client: Client, size: int, inflated_bytes: Callable[[], int], look: Callable[[], _Result]
) -> _Result:
    """Return what `look` returns, called in a thread once as many bytes as it takes are reserved.

    `size` is what was sent: to find out what it inflates to takes no longer than to read it. Raises
    what `look` raises, and MemoryShortError.
    """
    await records.prepare()
    threads = _threads_of(client.broker)
    with client.broker.memory.reading() as held:
        inflated = await threads.run(client, size, inflated_bytes)
        await held.reserve(inflated)
        return await threads.run(client, size + inflated, letting_go(look), held)


def _threads_of(broker: Broker) -> FairThreads:
    threads = _threads.get(broker)
    if threads is None:
        sizes = (LOOKS_OF_SMALL_BYTES, LOOKS_OF_MEDIUM_BYTES)
        threads = _threads[broker] = FairThreads("validation", sizes)
    return threads
