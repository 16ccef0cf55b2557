"""What is measured: the loads of one round, in the order in which they run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

KIB: Final = 1024
PROTOCOLS: Final = ("kafka", "pulsar", "iggy")


class Kind(StrEnum):
    """What the load generator does."""

    START = "start"
    """From the start of the broker's process to the first acknowledged message."""
    PRODUCE = "produce"
    CONSUME = "consume"
    REQUESTS = "requests"
    """One message a request, a fixed number of requests under way."""
    PUBLISH = "publish"
    """One message a request at a fixed rate; what counts is the time to the acknowledgement."""
    END_TO_END = "end-to-end"
    """At a fixed rate; what counts is the time until the consumer has the message."""
    CATCH_UP = "catch-up"
    """A consumer reads a backlog while a producer writes at a fixed rate to the same topic."""
    FOREIGN = "foreign"
    """What clients of another protocol wrote is consumed. Only Penstock can."""
    MANY = "many"
    """Small messages over many partitions."""
    TRANSACTIONS = "transactions"
    """One transaction after another; what counts is their number, and the time that one takes."""
    AMID = "amid"
    """PRODUCE again, with the many partitions there and idle connections open."""


@dataclass(frozen=True)
class Load:
    """One load. `topic` is written by the load of that name and may be read by later ones."""

    name: str
    kind: Kind
    title: str
    value_bytes: int = KIB
    tuned: bool = False
    topic: str = ""
    writer: str = ""
    """Protocol whose client writes what this load reads, where that is not its own."""
    rate: int = 0
    """Messages a second, where the rate is fixed."""
    window: int = 0
    """Requests under way, where their number is fixed."""
    protocol: str = ""
    """Whose clients alone can, where others can't."""
    transaction: int = 0
    """Messages of a transaction, where it is made of transactions."""
    quick: bool = True
    """Whether the load is part of the quick scale, and of the layout with one core each."""

    @property
    def has_latency(self) -> bool:
        """Whether it takes as long as percentiles need."""
        return bool(self.rate or self.transaction)

    @property
    def is_latency(self) -> bool:
        return self.kind in (Kind.PUBLISH, Kind.END_TO_END)


def _size(value_bytes: int) -> str:
    return f"{value_bytes} B" if value_bytes < KIB else f"{value_bytes // KIB} KB"


def _batched(value_bytes: int, *, tuned: bool, quick: bool) -> list[Load]:
    how = "tuned" if tuned else "default"
    written = f"produce-{value_bytes}-{how}"
    return [
        Load(
            name=f"{kind}-{value_bytes}-{how}",
            kind=kind,
            title=f"{kind} {_size(value_bytes)}, {how} batches",
            value_bytes=value_bytes,
            tuned=tuned,
            topic=written,
            quick=quick,
        )
        for kind in (Kind.PRODUCE, Kind.CONSUME)
    ]


LOADS: Final = (
    *_batched(KIB, tuned=False, quick=True),
    *_batched(KIB, tuned=True, quick=True),
    *_batched(100, tuned=False, quick=True),
    *_batched(100, tuned=True, quick=True),
    *_batched(10 * KIB, tuned=False, quick=True),
    *_batched(10 * KIB, tuned=True, quick=False),
    Load("requests-1", Kind.REQUESTS, "unbatched 1 KB, one request at a time", window=1),
    Load("requests-64", Kind.REQUESTS, "unbatched 1 KB, 64 requests under way", window=64),
    Load("publish-1000", Kind.PUBLISH, "unbatched 1 KB at 1,000/s, to the answer", rate=1_000),
    Load("end-to-end-1000", Kind.END_TO_END, "1 KB at 1,000/s, end to end", rate=1_000),
    Load(
        "end-to-end-10000",
        Kind.END_TO_END,
        "1 KB at 10,000/s, end to end",
        rate=10_000,
        quick=False,
    ),
    Load(
        "catch-up",
        Kind.CATCH_UP,
        "consume 1 KB while 1,000/s are written",
        tuned=True,
        topic=f"produce-{KIB}-tuned",
        rate=1_000,
    ),
    *(
        Load(
            f"foreign-{protocol}",
            Kind.FOREIGN,
            f"consume 1 KB that {protocol} clients wrote",
            writer=protocol,
            quick=False,
        )
        for protocol in PROTOCOLS
    ),
    *(
        Load(
            f"transactions-{messages}",
            Kind.TRANSACTIONS,
            title,
            transaction=messages,
            protocol="kafka",
        )
        for messages, title in (
            (1, "transactions of one message of 1 KB"),
            (100, "transactions of 100 messages of 1 KB over 4 partitions"),
        )
    ),
    Load("many", Kind.MANY, "produce 100 B over many partitions", value_bytes=100),
    Load("amid", Kind.AMID, "produce 1 KB to one partition amid many and idle connections"),
)

START: Final = Load("start", Kind.START, "start to the first acknowledged message")
"""Comes before the others and is part of every round."""

BY_NAME: Final = {load.name: load for load in (START, *LOADS)}


def chosen(*, everything: bool, names: list[str] | None = None) -> list[Load]:
    """Loads to run, in order. What a chosen load reads is written first.

    Raises ValueError for a name that is not known.
    """
    if names is None:
        return [load for load in LOADS if everything or load.quick]
    unknown = set(names) - set(BY_NAME)
    if unknown:
        raise ValueError(f"unknown load {min(unknown)}; known are {', '.join(BY_NAME)}")
    wanted = set(names) | {BY_NAME[name].topic for name in names}
    if "amid" in wanted:
        wanted.add("many")
    return [load for load in LOADS if load.name in wanted]
