"""Who reads what, and how far behind they are: the groups and subscriptions of all protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.groups.states import GroupState
from penstock.broker.topics.opening import open_all
from penstock.kafka.handlers.group_offsets import all_groups

if TYPE_CHECKING:
    from collections.abc import Container

    from penstock.broker.broker import Broker
    from penstock.broker.subscriptions.subscription import Subscription
    from penstock.broker.topics.partition import Partition
    from penstock.pace import Pace

UNKNOWN: Final = -1
"""An offset and a number of messages, where the log can't be opened."""


class Progress(NamedTuple):
    """How far a reader is. `position` is the first offset that is not done."""

    partition: Partition
    position: int
    end_offset: int
    backlog: int


class Reader(NamedTuple):
    """A group or a subscription; its type and state are in Kafka's words where it has some."""

    protocol: str
    name: str
    type: str
    state: str
    members: int
    topic: str
    """Kafka's name of the one that it is of; empty where it may be of several."""
    progress: list[Progress]


async def all_readers(broker: Broker, names: Container[str] | None, pace: Pace) -> list[Reader]:
    """Return the readers of these names, or all: linear in readers and partitions.

    Logs in which they have a place are opened for it.
    """
    survey = _Survey(broker, names, pace)
    return [
        *await survey.kafka_groups(),
        *await survey.subscriptions(),
        *await survey.iggy_groups(),
    ]


class _Survey:
    def __init__(self, broker: Broker, names: Container[str] | None, pace: Pace) -> None:
        self._broker = broker
        self._names = names
        self._pace = pace

    async def kafka_groups(self) -> list[Reader]:
        readers = []
        progress = await self._committed("kafka")
        for group in await all_groups(self._broker, self._pace):
            if self._is_wanted(group.group_id):
                found = self._broker.groups.get(group.group_id)
                members = 0 if found is None else len(found.members)
                done = progress.get(group.group_id, [])
                about = (group.protocol_type, group.state.value, members)
                readers.append(Reader("kafka", group.group_id, *about, "", done))
            if self._pace.is_over():
                await self._pace.others()
        return readers

    async def subscriptions(self) -> list[Reader]:
        having = self._broker.subscriptions.partition_ids()
        partitions = [each for each in await self._partitions() if each.id in having]
        await open_all(partitions)
        found: dict[tuple[object, str], Reader] = {}
        for partition in partitions:
            for each in self._broker.subscriptions.of_partition(partition):
                if self._is_wanted(each.name):
                    key = (partition.topic, each.name)
                    found[key] = _with(found.get(key), each)
                if self._pace.is_over():
                    await self._pace.others()
        return list(found.values())

    async def iggy_groups(self) -> list[Reader]:
        progress = await self._committed("iggy-group")
        by_topic: dict[tuple[object, str], list[Progress]] = {}
        for name, places in progress.items():
            for place in places:
                by_topic.setdefault((place.partition.topic, name), []).append(place)
            if self._pace.is_over():
                await self._pace.others()
        readers = []
        for group in self._broker.topic_groups.all():
            if self._is_wanted(group.name):
                done = by_topic.get((group.topic, group.name), [])
                state = GroupState.STABLE if group.members_count else GroupState.EMPTY
                about = ("group", state.value, group.members_count)
                readers.append(Reader("iggy", group.name, *about, group.topic.name.kafka, done))
            if self._pace.is_over():
                await self._pace.others()
        return readers

    async def _committed(self, kind: str) -> dict[str, list[Progress]]:
        """Return where committed offsets put the owners of a kind, by their names."""
        partitions = {each.id: each for each in await self._partitions()}
        places: list[tuple[str, Partition, int]] = []
        for owner in self._broker.offsets.owners(kind):
            if not self._is_wanted(owner.name):
                continue
            for partition_id, committed in tuple(self._broker.offsets.of_owner(owner).items()):
                if partition_id in partitions:
                    places.append((owner.name, partitions[partition_id], committed.offset))
                if self._pace.is_over():
                    await self._pace.others()
        await open_all(partition for _, partition, _ in places)
        progress: dict[str, list[Progress]] = {}
        for name, partition, position in places:
            progress.setdefault(name, []).append(_committed_to(partition, position))
            if self._pace.is_over():
                await self._pace.others()
        return progress

    async def _partitions(self) -> list[Partition]:
        partitions: list[Partition] = []
        for topic in self._broker.topics.all():
            partitions += topic.partitions
            if self._pace.is_over():
                await self._pace.others()
        return partitions

    def _is_wanted(self, name: str) -> bool:
        return self._names is None or name in self._names


def _committed_to(partition: Partition, position: int) -> Progress:
    if not partition.is_open:
        return Progress(partition, position, UNKNOWN, UNKNOWN)
    end = partition.readable_end()
    return Progress(partition, position, end, max(end - position, 0))


def _with(reader: Reader | None, subscription: Subscription) -> Reader:
    """Return a reader with one more partition's part of its subscription."""
    consumers = len(subscription.consumers)
    position = subscription.cursor.position
    end = subscription.partition.readable_end()
    progress = Progress(subscription.partition, position, end, max(subscription.backlog, 0))
    if reader is None:
        topic = subscription.partition.topic.name.kafka
        reader = Reader("pulsar", subscription.name, "subscription", "Empty", 0, topic, [])
    # A consumer of a topic is one of each of its partitions.
    state = subscription.kind.name.capitalize() if consumers else reader.state
    members = max(consumers, reader.members)
    reader.progress.append(progress)
    return reader._replace(state=state, members=members)
