"""Two brokers of Kafka's protocol that are asked the same, and what each gave to its client."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from penstock.clients.kafka.connection import ClientConnection
from penstock.kafka.wire import ErrorCode, api
from side_by_side import Outcome, Step

TIMEOUT_SECONDS = 60
PARTITIONS = {"one": 1, "many": 3}
TRANSACTIONAL_IDS = ("x", "y")
GROUPS = ("g", "h")
NOT_READY = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}
"""What a client asks again for, as long as it lasts. The last is said where a transaction ends."""


@dataclass
class Writer:
    """A producer, as one of the twins knows it."""

    id: int = -1
    epoch: int = -1
    sequences: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))


def nobody() -> Writer:
    """As none of the brokers knows."""
    return Writer(424_242, 0)


@dataclass
class Member:
    id: str = ""
    generation: int = -1
    protocol: str = "range"


class Twin:
    """A connection to one of the two, and what that one gave to its client.

    `run` keeps the names of one run from those of others on the same broker.
    """

    def __init__(self, address: str, run: str) -> None:
        self.run = run
        self.connection = ClientConnection(address, "twin", TIMEOUT_SECONDS)
        self.writers: dict[str, Writer] = {}
        self.members: dict[tuple[str, int], Member] = defaultdict(Member)
        self.began_ms = 0

    def name(self, short: str) -> str:
        return f"{self.run}-{short}"

    def do(self, step: Step[Twin]) -> Outcome:
        return step(self)

    def ask(self, name: str, newest: int | None = None, **fields: object) -> Any:
        """Ask until the broker is ready for it."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            answer = self.connection.send(api(name), api(name).request(**fields), newest)
            if not _codes(answer) & NOT_READY or time.monotonic() > deadline:
                return answer
            time.sleep(0.05)

    def begin(self) -> None:
        """Create the topics, and return once they and the coordinators are there."""
        request = api("CreateTopics").request
        topics = [
            request.CreatableTopic(name=self.name(name), num_partitions=count, replication_factor=1)
            for name, count in PARTITIONS.items()
        ]
        self.ask("CreateTopics", topics=topics, timeout_ms=10_000)
        for kind, names in ((0, GROUPS), (1, TRANSACTIONAL_IDS)):
            keys = [self.name(each) for each in names]
            self.ask("FindCoordinator", key_type=kind, coordinator_keys=keys)
        self.ask("DescribeGroups", groups=[self.name(each) for each in GROUPS])
        ids = [self.name(each) for each in TRANSACTIONAL_IDS]
        self.ask("DescribeTransactions", transactional_ids=ids)
        time.sleep(0.3)  # Apache Kafka answers before its broker knows what its controller does.

    def await_end(self, writer: str) -> None:
        """Return once no transaction is ending: Apache Kafka answers before it is over."""
        asked = {"transactional_ids": [self.name(writer)]}
        while self.ask("DescribeTransactions", **asked).transaction_states[0].transaction_state in (
            "PrepareCommit",
            "PrepareAbort",
        ):
            time.sleep(0.01)

    def close(self) -> None:
        self.connection.close()


def _codes(answer: Any) -> set[int]:
    """All error codes of an answer, at any depth."""
    found: set[int] = set()
    left = [answer]
    while left:
        each = left.pop()
        for name in getattr(type(each), "__slots__", ()):
            value = getattr(each, name)
            if name.endswith("error_code"):
                found.add(value)
            elif isinstance(value, list):
                left += value
    return found
