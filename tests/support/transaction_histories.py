"""Histories of transactional producers and of readers of what is committed, and what is wrong.

A value is named PRODUCER/TRANSACTION/MESSAGE. The lines of `histories.py` are about values, and
these besides about transactions, PRODUCER/TRANSACTION:

    committing - - name      its producer asked for it; without more, nobody knows
    committed - - name       and was told that it is
    aborted - - name         its producer was told so

Each transaction commits its number as an offset of a group, which shows what the last one was that
took effect there, or acknowledges the message of its number.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum

from histories import Event


class Kind(Enum):
    """What went wrong, each with what it means."""

    TORN = "of a transaction's values some are there and some are not"
    LOST = "a transaction that was committed is not there"
    DIRTY = "a value is there, or was read, of a transaction that was not committed"
    DOUBLED = "a value is there twice"
    INVENTED = "a value is there that nobody wrote"
    OFFSET = "the group's offset is not that of the last transaction that is there"
    ACKNOWLEDGED = "a message is acknowledged, or not, otherwise than its transaction is there"
    DISAGREED = "readers of two protocols find different values"


@dataclass(frozen=True)
class TransactionHistory:
    """One run; `truths` are whole reads of what is committed, through each protocol."""

    writers: Mapping[str, Sequence[Event]]
    followers: Mapping[str, Sequence[Event]]
    truths: Mapping[str, Sequence[Event]]
    offsets: Mapping[str, int]
    """Of a writer of Kafka's the offset of its group; without one 0."""
    left: Mapping[str, AbstractSet[int]]
    """Of a writer of Pulsar's the numbers of the messages that are not acknowledged."""


def find_anomalies(history: TransactionHistory) -> set[tuple[Kind, str]]:
    """Return what no correct broker could have caused. Linear in the history."""
    read = [event.value for event in history.truths["kafka"]]
    there = set(read)
    found = {(Kind.DOUBLED, value) for value, times in Counter(read).items() if times > 1}
    for name, events in history.truths.items():
        if sorted(event.value for event in events) != sorted(read):
            found.add((Kind.DISAGREED, name))
    written: set[str] = set()
    for name, events in history.writers.items():
        found |= set(_of_writer(name, events, there, history))
        written |= {event.value for event in events if event.verb == "invoked"}
    found |= {(Kind.INVENTED, value) for value in there - written}
    for events in history.followers.values():
        seen = Counter(event.value for event in events)
        found |= {(Kind.DOUBLED, value) for value, times in seen.items() if times > 1}
        found |= {(Kind.DIRTY, value) for value in seen.keys() - there}
    return found


def _of_writer(
    name: str, events: Sequence[Event], there: set[str], history: TransactionHistory
) -> Iterator[tuple[Kind, str]]:
    values: dict[str, list[str]] = defaultdict(list)
    ends: dict[str, str] = {}
    for event in events:
        if event.verb == "invoked":
            values[event.value.rpartition("/")[0]].append(event.value)
        else:
            ends[event.value] = event.verb
    last, left = 0, history.left.get(name)
    for transaction, its_values in values.items():
        seen = {value in there for value in its_values}
        if len(seen) > 1:
            yield Kind.TORN, transaction
        number = int(transaction.rpartition("/")[2])
        if True in seen:
            last = number
        if left is not None and (number in left) == (True in seen):
            yield Kind.ACKNOWLEDGED, transaction
        end = ends.get(transaction)
        if end == "committed" and seen != {True}:
            yield Kind.LOST, transaction
        if end not in {"committed", "committing"} and True in seen:
            yield Kind.DIRTY, transaction
    offset = history.offsets.get(name, 0)
    if left is None and offset != last:
        yield Kind.OFFSET, f"{name}: {offset}, not {last}"
