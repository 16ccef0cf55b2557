"""Which names match a client's pattern, a regular expression in the syntax of RE2.

RE2 takes time that is linear in the name, but a hostile pattern still takes milliseconds for a long
one. So names are held against it in a thread, a few at a time, for one client after the other.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from penstock.fair_threads import FairThreads
from penstock.limits import PATTERN_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.broker.broker import Broker
    from penstock.requests.call import Client

_TOGETHER: Final = 32_768
"""Characters of names that are looked at in one step; a name counts as some more."""
_NAME: Final = 64

_threads: Final[WeakKeyDictionary[Broker, FairThreads]] = WeakKeyDictionary()


class InvalidPatternError(ValueError):
    """A pattern is none of RE2's, or takes more than PATTERN_BYTES."""


async def matching(client: Client, pattern: str, names: Iterable[str]) -> list[str]:
    """Return the names of which the whole matches, in their order. Raises InvalidPatternError."""
    threads = _threads.get(client.broker)
    if threads is None:
        threads = _threads[client.broker] = FairThreads("patterns", ())
    compiled = await threads.run(client, len(pattern), partial(_compiled, pattern))
    found: list[str] = []
    for together, size in _cut(names):
        found += await threads.run(client, size, partial(_held, compiled, together))
    return found


def _compiled(pattern: str) -> Any:
    import re2  # noqa: PLC0415 - most brokers are asked for no pattern

    options = re2.Options()
    options.log_errors = False
    options.max_mem = int(PATTERN_BYTES)
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        (reason,) = error.args
        raise InvalidPatternError(f"the pattern is none: {reason.decode()}") from error


def _held(compiled: Any, names: list[str]) -> list[str]:
    return [name for name in names if compiled.fullmatch(name)]


def _cut(names: Iterable[str]) -> Iterator[tuple[list[str], int]]:
    together: list[str] = []
    size = 0
    for name in names:
        together.append(name)
        size += len(name) + _NAME
        if size >= _TOGETHER:
            yield together, size
            together, size = [], 0
    if together:
        yield together, size
