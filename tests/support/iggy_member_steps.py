"""What several members of one group of twins do, of random choices: join, leave, read, and what
comes of it: which messages, to which offsets, whoever of them reads which partition.

Who gets which partition, and when, differs on purpose; docs/iggy.md has the list.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import TypeAlias

from iggy_twins import Client, Twin
from patience import wait_until
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.identifiers import (
    Consumer,
    ConsumerKind,
    Identifier,
    Partitioning,
    PollingKind,
    PollingStrategy,
)
from side_by_side import Outcome, Step, Weights

CLIENTS = 3
FEWEST, MOST = 1, 6
TOPIC, GROUP = Identifier("shared"), Identifier("m")
MEMBER = Consumer(ConsumerKind.GROUP, GROUP)
NEXT = PollingStrategy(PollingKind.NEXT)
AT_ONCE = 10

Place: TypeAlias = int | None
"""A partition; None where the server chooses among a member's own."""


class Members(Twin):
    """A twin with a group, and who of its clients is in it."""

    def __init__(self, connected: Callable[[], Client], run: str) -> None:
        super().__init__(connected, run, CLIENTS)
        self.joined: set[int] = set()
        self.partitions = 4
        self.make_stream(self.stream, {str(TOPIC.value): self.partitions})
        self.make_group()

    def make_group(self) -> Outcome:
        name = str(GROUP.value)
        request = requests.CreateConsumerGroup(self.stream, TOPIC, name)
        return _known(self.ask(Command.CREATE_CONSUMER_GROUP, request))

    def of_group(self, command: Command, client: int = 0) -> Outcome:
        """Return what a command that names the group is answered with."""
        request = requests.ConsumerGroupRequest(self.stream, TOPIC, GROUP)
        return self.ask(command, request, client)

    def poll(self, client: int, place: Place, *, commit: bool) -> Outcome:
        request = requests.PollMessages(MEMBER, self.stream, TOPIC, place, NEXT, AT_ONCE, commit)
        return self.ask(Command.POLL_MESSAGES, request, client)

    def places(self, client: int) -> Iterable[Place]:
        """Return where a member may read."""
        told = self.of_group(Command.SYNC_CONSUMER_GROUP, client)
        if isinstance(told, dict):
            return list(told["partitions"])
        return [None] * self.partitions  # The older dialects know no such command.

    def group(self) -> Outcome:
        """Return how many members there are, and which partitions have one."""
        told = self.of_group(Command.GET_CONSUMER_GROUP)
        if not isinstance(told, dict):
            return told
        owned = sorted(each for member in told["members"] for each in member["partitions"])
        return told["group"]["members_count"], told["group"]["partitions_count"], owned

    def read_up_to(self, partition: int) -> int:
        """Return how many messages of a partition the group is done with."""
        place = (MEMBER, self.stream, TOPIC, partition)
        told = self.ask(Command.GET_CONSUMER_OFFSET, requests.GetConsumerOffset(*place))
        return told["stored_offset"] + 1 if isinstance(told, dict) else 0

    def ends(self) -> list[int]:
        """Return how many messages there are in each partition."""
        told = self.ask(Command.GET_TOPIC, requests.TopicRequest(self.stream, TOPIC))
        assert isinstance(told, dict)
        partitions = sorted(told["partitions"], key=lambda each: each["id"])
        return [each["messages_count"] for each in partitions]


def _known(answer: Outcome) -> Outcome:
    """An answer without the group's number, which 0.8 gives again."""
    return "made" if isinstance(answer, dict) else answer


def join(chance: random.Random) -> Step[Members]:
    client = chance.randrange(CLIENTS)

    def step(twin: Members) -> Outcome:
        answer = twin.of_group(Command.JOIN_CONSUMER_GROUP, client)
        twin.joined.add(client)
        return answer, twin.group()

    return step


def leave(chance: random.Random) -> Step[Members]:
    client = chance.randrange(CLIENTS)

    def step(twin: Members) -> Outcome:
        answer = twin.of_group(Command.LEAVE_CONSUMER_GROUP, client)
        twin.joined.discard(client)
        return answer, twin.group()

    return step


def hang_up(chance: random.Random) -> Step[Members]:
    client, logs_out = chance.randrange(1, CLIENTS), chance.random() < 0.3

    def step(twin: Members) -> Outcome:
        answer = twin.ask(Command.LOGOUT_USER, b"", client) if logs_out else None
        twin.reconnect(client)
        twin.joined.discard(client)
        wait_until(lambda: twin.group()[0] == len(twin.joined))
        return answer, twin.group()

    return step


def remake(_chance: random.Random) -> Step[Members]:
    def step(twin: Members) -> Outcome:
        answer = twin.of_group(Command.DELETE_CONSUMER_GROUP)
        twin.joined.clear()
        return answer, twin.make_group(), twin.group()

    return step


def change_partitions(chance: random.Random) -> Step[Members]:
    grows = chance.random() < 0.6

    def step(twin: Members) -> Outcome:
        count = twin.partitions + (1 if grows else -1)
        if not FEWEST <= count <= MOST:
            return None
        twin.partitions = count
        request = requests.CreatePartitions(twin.stream, TOPIC, 1)
        command = Command.CREATE_PARTITIONS if grows else Command.DELETE_PARTITIONS
        return twin.ask(command, request), twin.group()

    return step


def send(chance: random.Random) -> Step[Members]:
    partition, count = chance.randrange(MOST), chance.choice([1, 3, 25])
    payloads = [b"%d" % chance.getrandbits(40) for _ in range(count)]

    def step(twin: Members) -> Outcome:
        to = Partitioning.partition(partition % twin.partitions)
        return twin.send(twin.stream, TOPIC, to, payloads)

    return step


def read(chance: random.Random) -> Step[Members]:
    """A member reads, and does not say that it is done: that is read again, whoever it falls to."""
    client = chance.randrange(CLIENTS)

    def step(twin: Members) -> Outcome:
        if client in twin.joined:
            for place in twin.places(client):
                twin.poll(client, place, commit=False)
        return None

    return step


def drain(_chance: random.Random) -> Step[Members]:
    """All members read until nothing is left: how much they got of each partition is told."""

    def step(twin: Members) -> Outcome:
        if not twin.joined:
            return None
        ends = twin.ends()
        got = [0] * len(ends)

        def is_done() -> bool:
            for client in twin.joined:
                for place in twin.places(client):
                    partition, _, count, _ = twin.poll(client, place, commit=True)
                    if count:
                        got[partition] += count
            return ends == [twin.read_up_to(partition) for partition in range(len(ends))]

        wait_until(is_done)
        return ends, got

    return step


WEIGHTS: Weights[Members] = {
    join: 5,
    leave: 2,
    hang_up: 2,
    remake: 1,
    change_partitions: 1,
    send: 8,
    read: 5,
    drain: 3,
}
