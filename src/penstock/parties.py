"""Whose turn it is among parties, clients' connections, where each may have much to do."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Container
from contextvars import ContextVar
from typing import Final, Generic, TypeVar

EntryT = TypeVar("EntryT")

NOBODY: Final = ""

ASKING: Final = ContextVar("ASKING", default=NOBODY)
"""For which party, a client's connection, the event loop is at work."""

_PASSED_OVER_MOST: Final = 3


class Line(Generic[EntryT]):
    """Entries that wait, of all parties one each before a second of any: a client that writes to a
    thousand logs at once is a thousand jobs ahead of itself, and one ahead of others.

    A thousand such clients are one party ahead of others each. So who comes with nothing waiting
    goes before all who had a turn and have more to do; these get every fourth turn at least. Any
    thread may put and take.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrived: OrderedDict[str, deque[EntryT]] = OrderedDict()
        """None of the parties is empty; the first one's turn is next."""
        self._left_over: OrderedDict[str, deque[EntryT]] = OrderedDict()
        """The same, of those that had a turn since they came."""
        self._passed_over = 0
        """How often in a row others went before these."""

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._arrived or self._left_over)

    def put(self, entry: EntryT, party: str) -> None:
        with self._lock:
            waiting = self._arrived.get(party) or self._left_over.get(party)
            if waiting is None:
                self._arrived[party] = deque((entry,))
            else:
                waiting.append(entry)

    def take(self) -> EntryT:
        """Return the next one; there has to be one."""
        with self._lock:
            parties = self._next_parties()
            return self._taken(parties, next(iter(parties)))

    def take_but(self, barred: Container[str]) -> tuple[EntryT, str] | None:
        """Return the next one, and whose it is, but for some parties; None where all are theirs."""
        with self._lock:
            first = self._next_parties()
            for parties in (first, self._arrived, self._left_over):
                for party in parties:
                    if party not in barred:
                        return self._taken(parties, party), party
        return None

    def _taken(self, parties: OrderedDict[str, deque[EntryT]], party: str) -> EntryT:
        waiting = parties.pop(party)
        entry = waiting.popleft()
        if waiting:
            self._left_over[party] = waiting
        return entry

    def _next_parties(self) -> OrderedDict[str, deque[EntryT]]:
        if not self._left_over:
            return self._arrived
        if not self._arrived or self._passed_over == _PASSED_OVER_MOST:
            self._passed_over = 0
            return self._left_over
        self._passed_over += 1
        return self._arrived
