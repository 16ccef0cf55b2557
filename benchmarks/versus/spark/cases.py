"""What is measured: a case is one thing done with all rows of a topic; a bar compares two cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from versus.spark import history, work
from versus.spark.topics import AVRO_ORDERS, BYTES_100, BYTES_1000, ORDERS, SMALL, Topic
from versus.spark.work import Session, Work


@dataclass(frozen=True)
class Case:
    """One thing to do, by our source or by Spark's."""

    name: str
    topic: Topic
    reads: str
    """The broker: `penstock` or `kafka`."""
    do: Callable[[Session, Work], None]
    warm: bool = True
    """Done once before it is measured; otherwise the application's start is part of it."""
    prepare: Callable[[Work], None] | None = None
    """Makes what the case is done with; no part of what is measured."""
    times: int = 1
    """How often the rows are gone over."""
    shares: str = ""
    """The application that it shares with those of the same word; otherwise it has its own."""


@dataclass(frozen=True)
class Bar:
    """Ours ÷ theirs of one figure, and what it has to be at least."""

    ours: str
    theirs: str
    figure: str
    at_least: float


@dataclass(frozen=True)
class Conversion:
    """What it takes to have values as columns beyond having them as bytes, by either source."""

    name: str
    ours: tuple[str, str]
    """The case with columns and the one with bytes."""
    theirs: tuple[str, str]

    @property
    def cases(self) -> set[str]:
        return {*self.ours, *self.theirs}


SPEED: Final = "rows a second"
EFFICIENCY: Final = "rows a CPU second"
HISTORY_AT_LEAST: Final = 0.9
TURNS: Final = 5
"""Of each case in an application that several share."""


def _history() -> Iterator[tuple[Case, Case]]:
    for name, query in history.QUERIES.items():
        how = {"prepare": history.make_table, "times": history.TIMES, "shares": name}
        yield (
            Case(f"{name}, live table", BYTES_100, "penstock", history.by_view(query), **how),
            Case(f"{name}, spark.read", BYTES_100, "penstock", history.by_files(query), **how),
        )


_HISTORY: Final = list(_history())

CASES: Final = {
    case.name: case
    for case in (
        Case("noop 100 B, log", BYTES_100, "penstock", work.scan_log),
        Case("noop 100 B, wire", BYTES_100, "penstock", work.scan_wire),
        Case("noop 100 B, Spark's Kafka source", BYTES_100, "kafka", work.scan_kafka),
        Case("noop 1 KB, log", BYTES_1000, "penstock", work.scan_log),
        Case("noop 1 KB, wire", BYTES_1000, "penstock", work.scan_wire),
        Case("noop 1 KB, Spark's Kafka source", BYTES_1000, "kafka", work.scan_kafka),
        Case("table 100 B, pipeline run", BYTES_100, "penstock", work.table_ours, warm=False),
        Case("table 100 B, Spark's Kafka source", BYTES_100, "kafka", work.table_kafka, warm=False),
        Case("JSON, schema option", ORDERS, "penstock", work.json_ours),
        Case("JSON, from_json", ORDERS, "kafka", work.json_kafka),
        Case("JSON as bytes, log", ORDERS, "penstock", work.bytes_ours),
        Case("JSON as bytes, Spark's Kafka source", ORDERS, "kafka", work.bytes_kafka),
        Case("Avro, schema option", AVRO_ORDERS, "penstock", work.avro_ours),
        Case("Avro, from_avro", AVRO_ORDERS, "kafka", work.avro_kafka),
        Case("Avro as bytes, log", AVRO_ORDERS, "penstock", work.bytes_ours),
        Case("Avro as bytes, Spark's Kafka source", AVRO_ORDERS, "kafka", work.bytes_kafka),
        *(case for pair in _HISTORY for case in pair),
        Case("small job, pipeline run", SMALL, "penstock", work.table_ours, warm=False),
        Case("small job, Spark's Kafka source", SMALL, "kafka", work.table_kafka, warm=False),
    )
}

BARS: Final = (
    Bar("noop 100 B, log", "noop 100 B, Spark's Kafka source", SPEED, 2.5),
    Bar("noop 100 B, wire", "noop 100 B, Spark's Kafka source", SPEED, 1.5),
    Bar("noop 1 KB, log", "noop 1 KB, Spark's Kafka source", SPEED, 2.0),
    Bar("noop 1 KB, wire", "noop 1 KB, Spark's Kafka source", SPEED, 1.5),
    Bar("table 100 B, pipeline run", "table 100 B, Spark's Kafka source", EFFICIENCY, 4.0),
    Bar("JSON, schema option", "JSON, from_json", EFFICIENCY, 3.0),
    Bar("Avro, schema option", "Avro, from_avro", EFFICIENCY, 3.0),
    *(Bar(ours.name, theirs.name, SPEED, HISTORY_AT_LEAST) for ours, theirs in _HISTORY),
    Bar("small job, pipeline run", "small job, Spark's Kafka source", SPEED, 1.0),
)

CONVERSIONS: Final = tuple(
    Conversion(
        f"{kind}, bytes to columns",
        (f"{kind}, schema option", f"{kind} as bytes, log"),
        (f"{kind}, {function}", f"{kind} as bytes, Spark's Kafka source"),
    )
    for kind, function in (("JSON", "from_json"), ("Avro", "from_avro"))
)
"""For which the bars of whole reads can be looked at without what it takes to read bytes."""


def applications(cases: Iterable[Case]) -> list[list[Case]]:
    """Return the cases by the application that does them, in their order."""
    by_word: dict[str, list[Case]] = {}
    for case in cases:
        by_word.setdefault(case.shares or case.name, []).append(case)
    return list(by_word.values())


def in_turn(cases: list[Case]) -> list[tuple[int, Case]]:
    """Return the turns of an application and whose they are; who was first is last in the next."""
    turns = range(1, TURNS + 1 if len(cases) > 1 else 2)
    return [(turn, case) for turn in turns for case in (cases if turn % 2 else cases[::-1])]
