"""Histories of what clients wrote and read, and what in them no correct log could have caused.

A client's history is lines in the order in which things happened to it:

    invoked - - value        a write begins
    ok 0 17 value            it was acknowledged as safe, at this partition and offset
    refused - - value        the broker said that it will not have it
    read 0 17 value          a reader got it

A write that was invoked and has no other line is unknown: it may be there or not, now or later.
Values are unique over all writers. The truth is what is read, from the first offset to the end,
after the last crash, through any one protocol; `find_anomalies` says what contradicts it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import NamedTuple


class Kind(Enum):
    """What went wrong, each with what it means."""

    LOST = "an acknowledged value is not where its writer was told"
    DUPLICATED = "a value of an idempotent writer is there twice"
    REORDERED = "a writer's later value has the smaller offset"
    RESURRECTED = "a refused value is there"
    INVENTED = "a value is there that nobody wrote"
    REUSED = "two values were seen at one offset"
    DIRTY = "a value was read that is gone"
    BACKWARDS = "a reader got an offset that is not above the one before"
    SKIPPED = "a reader went past a value"
    UNSEEN = "a reader at the end has not seen a value"
    DISAGREED = "readers of two protocols find different values"


class Place(NamedTuple):
    partition: int
    offset: int


class Event(NamedTuple):
    """One line; the place is None where the line has none."""

    verb: str
    place: Place | None
    value: str


class Anomaly(NamedTuple):
    kind: Kind
    detail: str

    def __str__(self) -> str:
        return f"{self.kind.name}: {self.detail} ({self.kind.value})"


Truth = Mapping[Place, str]


@dataclass(frozen=True)
class History:
    """One run. Writers and readers are clients by name."""

    writers: Mapping[str, Sequence[Event]]
    readers: Mapping[str, Sequence[Event]]
    truths: Mapping[str, Sequence[Event]]
    """What a whole read through each protocol found after everything ended."""
    idempotent: Collection[str] = ()
    """Writers whose values must not be there twice."""
    caught_up: Collection[str] = ()
    """Readers that had as much time as they wanted to get to the end."""


def parse(text: str) -> list[Event]:
    """Read whole lines; the last one may be cut off, as its client may have been killed in it."""
    events = []
    for line in text.rpartition("\n")[0].splitlines():
        verb, partition, offset, value = line.split(" ", 3)
        place = None if offset == "-" else Place(int(partition), int(offset))
        events.append(Event(verb, place, value))
    return events


def find_anomalies(history: History) -> list[Anomaly]:
    """Return everything that is wrong, linear in the history but for sorting."""
    name, events = next(iter(history.truths.items()))
    truth = {event.place: event.value for event in events if event.place is not None}
    return [
        *_truth_is_one(history.truths, name),
        *_written_is_there(history, truth),
        *_there_was_written(history, truth),
        *_in_order(history.writers),
        *_one_value_an_offset(history, truth),
        *_read_is_there(history.readers, truth),
        *_read_in_order(history, truth),
    ]


def _truth_is_one(truths: Mapping[str, Sequence[Event]], first: str) -> Iterator[Anomaly]:
    expected = [(event.place, event.value) for event in truths[first]]
    if len(set(expected)) < len(expected):
        yield Anomaly(Kind.BACKWARDS, f"{first} reads a value twice")
    for name, events in truths.items():
        found = [(event.place, event.value) for event in events]
        if sorted(found, key=str) != sorted(expected, key=str):
            differing = sorted(set(found) ^ set(expected), key=str)[:3]
            yield Anomaly(Kind.DISAGREED, f"{name} and {first}: {differing}")


def _written_is_there(history: History, truth: Truth) -> Iterator[Anomaly]:
    everywhere = set(truth.values())
    for writer, events in history.writers.items():
        for event in events:
            if event.verb != "ok":
                continue
            if event.place is None and event.value not in everywhere:
                yield Anomaly(Kind.LOST, f"{writer}'s {event.value}, wherever it is")
            elif event.place and truth.get(event.place) != event.value:
                found = truth.get(event.place, "nothing")
                yield Anomaly(Kind.LOST, f"{writer}'s {event.value} at {event.place}: {found}")


def _there_was_written(history: History, truth: Truth) -> Iterator[Anomaly]:
    writer_of, refused = {}, set()
    for writer, events in history.writers.items():
        for event in events:
            writer_of[event.value] = writer
            if event.verb == "refused":
                refused.add(event.value)
    places: dict[str, list[Place]] = defaultdict(list)
    for place, value in truth.items():
        places[value].append(place)
    for value, found in places.items():
        if value not in writer_of:
            yield Anomaly(Kind.INVENTED, f"{value} at {found}")
        elif value in refused:
            yield Anomaly(Kind.RESURRECTED, f"{writer_of[value]}'s {value} at {found}")
        if len(found) > 1 and writer_of.get(value) in history.idempotent:
            yield Anomaly(Kind.DUPLICATED, f"{writer_of[value]}'s {value} at {found}")


def _in_order(writers: Mapping[str, Sequence[Event]]) -> Iterator[Anomaly]:
    for writer, events in writers.items():
        began = {e.value: number for number, e in enumerate(events) if e.verb == "invoked"}
        placed: dict[int, list[tuple[int, Event]]] = defaultdict(list)
        for event in events:
            if event.verb == "ok" and event.place:
                placed[event.place.partition].append((began[event.value], event))
        for numbered in placed.values():
            for (_, before), (_, after) in pairwise(sorted(numbered)):
                if _offset(after) <= _offset(before):
                    yield Anomaly(Kind.REORDERED, f"{writer}: {before} then {after}")


def _one_value_an_offset(history: History, truth: Truth) -> Iterator[Anomaly]:
    seen = dict(truth)
    for events in (*history.writers.values(), *history.readers.values()):
        for event in events:
            if event.place and seen.setdefault(event.place, event.value) != event.value:
                yield Anomaly(Kind.REUSED, f"{event.place}: {seen[event.place]} and {event.value}")


def _read_is_there(readers: Mapping[str, Sequence[Event]], truth: Truth) -> Iterator[Anomaly]:
    for reader, events in readers.items():
        for event in events:
            if event.place and event.place not in truth:
                yield Anomaly(Kind.DIRTY, f"{reader} read {event.value} at {event.place}")


def _read_in_order(history: History, truth: Truth) -> Iterator[Anomaly]:
    offsets = _offsets_by_partition(truth)
    for reader, events in history.readers.items():
        for partition, got in _got_by_partition(events).items():
            for before, after in pairwise(got):
                if after <= before:
                    yield Anomaly(
                        Kind.BACKWARDS, f"{reader}, partition {partition}: {before}, {after}"
                    )
            yield from _gaps(f"{reader}, partition {partition}", got, offsets[partition])
        if reader in history.caught_up:
            yield from _unseen(reader, events, truth)


def _gaps(reader: str, got: Sequence[int], expected: Sequence[int]) -> Iterator[Anomaly]:
    seen = set(got)
    skipped = [offset for offset in expected if got[0] < offset < got[-1] and offset not in seen]
    if skipped:
        yield Anomaly(Kind.SKIPPED, f"{reader}: {len(skipped)} from {skipped[0]} on")


def _unseen(reader: str, events: Sequence[Event], truth: Truth) -> Iterator[Anomaly]:
    last = {partition: got[-1] for partition, got in _got_by_partition(events).items()}
    unseen = [place for place in truth if place.offset > last.get(place.partition, -1)]
    if unseen:
        yield Anomaly(Kind.UNSEEN, f"{reader}: {len(unseen)} from {min(unseen)} on")


def _offsets_by_partition(truth: Truth) -> dict[int, list[int]]:
    offsets: dict[int, list[int]] = defaultdict(list)
    for partition, offset in sorted(truth):
        offsets[partition].append(offset)
    return offsets


def _got_by_partition(events: Iterable[Event]) -> dict[int, list[int]]:
    got: dict[int, list[int]] = defaultdict(list)
    for event in events:
        if event.place:
            got[event.place.partition].append(event.place.offset)
    return got


def _offset(event: Event) -> int:
    assert event.place is not None
    return event.place.offset
