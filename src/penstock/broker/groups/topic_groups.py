"""Consumer groups whose members divide a topic's partitions at once, without a round of voting.

A group belongs to one topic and lasts: its name and number are in the database. Who is in it does
not: members are connections, and a broker that starts again has none. Partition i belongs to member
i mod n in the order of joining.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock import limits
from penstock.broker.errors import (
    BrokerError,
    GroupExistsError,
    GroupFullError,
    GroupNumberTakenError,
    UnknownGroupError,
    UnknownMemberError,
    UnknownPartitionError,
    UnknownTopicError,
)
from penstock.memory import Holding
from penstock.metadata.topic_groups import TopicGroupRow
from penstock.tasks import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence
    from uuid import UUID

    from penstock.broker.creations import Creations
    from penstock.broker.groups.census import Census
    from penstock.broker.topics.catalogue import Topics
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.memory import Memory, SharedAccount
    from penstock.metadata.topic_groups import TopicGroupRepository

_MEMBERSHIP_BYTES: Final = 512
"""About what it takes of memory that a member is in a group."""


class Memberships:
    """The groups of each member, in the order of joining."""

    def __init__(self, account: SharedAccount) -> None:
        self._account = account
        self._held = Holding(account)
        self._groups: dict[Hashable, dict[TopicGroup, None]] = {}

    def of(self, member: Hashable) -> list[TopicGroup]:
        return list(self._groups.get(member, ()))

    def add(self, member: Hashable, group: TopicGroup) -> None:
        """Note that a member is in a group. Raises GroupFullError."""
        count = len(self._groups.get(member, ()))
        is_little = count < limits.MEMBER_LEAST_GROUPS
        if count >= limits.MEMBER_GROUPS:
            raise GroupFullError(f"a member is in at most {limits.MEMBER_GROUPS} groups")
        if not is_little and not self._account.fits(_MEMBERSHIP_BYTES):
            raise GroupFullError("there is no memory for one more group of this member")
        self._groups.setdefault(member, {})[group] = None
        self._held.grow(_MEMBERSHIP_BYTES)

    def remove(self, member: Hashable, group: TopicGroup) -> None:
        """Note that a member is not in a group any more."""
        groups = self._groups[member]
        del groups[group]
        if not groups:
            del self._groups[member]
        self._held.grow(-_MEMBERSHIP_BYTES)


class Place(NamedTuple):
    """A member, its number within the group, and its partitions."""

    member: Hashable
    number: int
    partitions: list[int]


class TopicGroup:
    """One group of one topic. A member is whatever stands for one connection.

    `memberships` is where all groups note who is in which of them.
    """

    def __init__(self, topic: Topic, group_id: int, name: str, memberships: Memberships) -> None:
        self.topic = topic
        self.group_id = group_id
        self.name = name
        self._memberships = memberships
        self._members: dict[Hashable, int] = {}
        # Ascending: a member's place in it is its rank.
        self._numbers: list[int] = []
        self._generations_sent: dict[Hashable, int] = {}
        self._last_polled: dict[Hashable, int] = {}
        self._members_ever = 0
        self._changes = 0

    @property
    def generation(self) -> int:
        """A number that grows whenever the partitions are divided anew."""
        # New partitions need no change here: their count is part of the number.
        return self._changes + len(self.topic.partitions)

    @property
    def members(self) -> dict[int, list[int]]:
        """The partitions of each member, by its number within the group."""
        return {number: list(self._share(rank)) for rank, number in enumerate(self._numbers)}

    @property
    def places(self) -> list[Place]:
        """Who reads what, in the order of joining."""
        ranks = zip(self._members.items(), self.members.values(), strict=True)
        return [Place(member, number, partitions) for (member, number), partitions in ranks]

    @property
    def members_count(self) -> int:
        return len(self._numbers)

    def assigned(self, member: Hashable) -> list[int] | None:
        """The partitions of this member, or None when it is not in the group."""
        share = self._share_of(member)
        return None if share is None else list(share)

    def sync(self, member: Hashable) -> list[int] | None:
        """Return a member's partitions, which it knows now, or None when it is not in the group."""
        partitions = self.assigned(member)
        if partitions is not None:
            self._generations_sent[member] = self.generation
        return partitions

    def may_read(self, member: Hashable, partition: int) -> bool:
        """Whether the partition is this member's own, as far as the member can know.

        One that knows an older division must ask again even for a partition that it keeps, or
        it would not hear of those that it got besides. One that never asked chooses for itself.
        """
        if self._generations_sent.get(member, self.generation) != self.generation:
            return False
        return partition in (self._share_of(member) or ())

    def next_partition(self, member: Hashable) -> int | None:
        """Return the next of a member's partitions in turn, None where it has none.

        Raises UnknownMemberError.
        """
        share = self._share_of(member)
        if share is None:
            raise UnknownMemberError(f"not a member of group {self.name}")
        if not share:
            return None
        following = self._last_polled.get(member, -1) + share.step
        self._last_polled[member] = following if following in share else share[0]
        return self._last_polled[member]

    def last_polled(self, member: Hashable) -> int:
        """Return the partition that `next_partition` gave last.

        Raises UnknownMemberError, and UnknownPartitionError where it gave none since the partitions
        were divided anew.
        """
        if member not in self._members:
            raise UnknownMemberError(f"not a member of group {self.name}")
        if member not in self._last_polled:
            raise UnknownPartitionError(f"a member of group {self.name} has not polled yet")
        return self._last_polled[member]

    def join(self, member: Hashable) -> None:
        """Add a member; one that is in already stays as it is. Raises GroupFullError."""
        if member in self._members:
            return
        self._memberships.add(member, self)
        self._members[member] = self._members_ever
        self._numbers.append(self._members_ever)
        self._members_ever += 1
        self._divided_anew()
        assert self._members_ever >= len(self._members), "a number is given once"

    def leave(self, member: Hashable) -> None:
        """Give a member's partitions to the others. Raises UnknownMemberError."""
        number = self._members.pop(member, None)
        if number is None:
            raise UnknownMemberError(f"not a member of group {self.name}")
        del self._numbers[bisect_left(self._numbers, number)]
        self._generations_sent.pop(member, None)
        self._divided_anew()
        self._memberships.remove(member, self)

    def partitions_deleted(self, count: int) -> None:
        """The topic has so many partitions fewer; what is left is divided anew."""
        self._changes += count
        self._divided_anew()

    def _divided_anew(self) -> None:
        self._changes += 1
        self._last_polled.clear()

    def leave_all(self) -> None:
        """The group is deleted; its members find themselves in none."""
        for member in tuple(self._members):
            self.leave(member)

    def _share_of(self, member: Hashable) -> range | None:
        number = self._members.get(member)
        return None if number is None else self._share(bisect_left(self._numbers, number))

    def _share(self, rank: int) -> range:
        return range(rank, len(self.topic.partitions), len(self._numbers))


class TopicGroups:
    """The groups of all topics. What `create` and `delete` did is durable when they return."""

    def __init__(
        self,
        repository: TopicGroupRepository,
        topics: Topics,
        creations: Creations,
        census: Census,
        memory: Memory,
    ) -> None:
        self._repository = repository
        self._creations = creations
        self._census = census
        self._makers: dict[TopicGroup, str | None] = {}
        """The addresses of the clients that made groups in this run: none is stored."""
        self._topics = topics
        self._groups: dict[UUID, dict[int, TopicGroup]] = {}
        self._by_name: dict[tuple[UUID, str], TopicGroup] = {}
        self._memberships = Memberships(memory.clients)
        self._ids_given: dict[UUID, int] = {}
        topics.deletion.on_topic(self._forget)
        topics.deletion.on_partitions(self._partitions_deleted)

    def load(self) -> None:
        """Read the groups from the database once the topics are there; blocks."""
        topics = {topic.id: topic for topic in self._topics.all()}
        for row in self._repository.all():
            self._remember(topics[row.topic_id], row.group_id, row.name)

    def of_topic(self, topic: Topic) -> list[TopicGroup]:
        return list(self._groups.get(topic.id, {}).values())

    def all(self) -> list[TopicGroup]:
        return [group for groups in self._groups.values() for group in groups.values()]

    def get(self, topic: Topic, group: int | str) -> TopicGroup:
        """Return the group of this number or name. Raises UnknownGroupError."""
        found = (
            self._by_name.get((topic.id, group))
            if isinstance(group, str)
            else self._groups.get(topic.id, {}).get(group)
        )
        if found is None:
            raise UnknownGroupError(f"topic {topic.name.kafka} has no group {group!r}")
        return found

    def of_member(self, member: Hashable) -> list[TopicGroup]:
        return self._memberships.of(member)

    async def create(
        self, topic: Topic, name: str, address: str | None = None, number: int | None = None
    ) -> TopicGroup:
        """Make a group. `address` is that of the client.

        Its number is the one that is given, or the next of its topic. Raises UnknownTopicError,
        GroupExistsError, GroupNumberTakenError, GroupsThrottledError and GroupFullError.
        """
        if topic.deleted:
            raise UnknownTopicError(f"topic {topic.name.kafka} was deleted")
        if number in self._groups.get(topic.id, {}):
            raise GroupNumberTakenError(f"topic {topic.name.kafka} has a group {number} already")
        if (topic.id, name) in self._by_name:
            raise GroupExistsError(f"topic {topic.name.kafka} has a group {name!r} already")
        if len(self._by_name) >= limits.TOPIC_GROUPS:
            raise GroupFullError(f"the broker has {limits.TOPIC_GROUPS} groups of topics")
        self._census.check(address)
        self._creations.take(address)
        number = self._ids_given.get(topic.id, 0) if number is None else number
        creating = self._create(topic, name, number, address)
        return await uninterrupted(creating, "creating a group", refusals=BrokerError)

    async def _create(
        self, topic: Topic, name: str, number: int, address: str | None
    ) -> TopicGroup:
        # Remembered before the write, so that nobody else takes the name or the number meanwhile.
        group = self._remember(topic, number, name)
        self._makers[group] = address
        self._census.add(address)
        try:
            await self._repository.insert(TopicGroupRow(topic.id, group.group_id, name))
        except BaseException:
            self._drop(group)
            raise
        return group

    async def delete(self, group: TopicGroup) -> None:
        """Delete a group; its members find themselves in none. Raises UnknownGroupError."""
        if not self._drop(group):
            raise UnknownGroupError(f"group {group.name!r} was deleted")
        await self._repository.delete(group.topic.id, group.group_id)

    def leave_all(self, member: Hashable) -> None:
        """A connection is gone, and with it its place in every group."""
        for group in self.of_member(member):
            group.leave(member)

    def _remember(self, topic: Topic, group_id: int, name: str) -> TopicGroup:
        groups = self._groups.setdefault(topic.id, {})
        assert group_id not in groups, "a number is given once"
        group = TopicGroup(topic, group_id, name, self._memberships)
        groups[group_id] = self._by_name[topic.id, name] = group
        self._ids_given[topic.id] = max(self._ids_given.get(topic.id, 0), group_id + 1)
        return group

    def _drop(self, group: TopicGroup) -> bool:
        """Forget a group; return whether it was known."""
        known = self._groups.get(group.topic.id, {})
        if known.get(group.group_id) is not group:
            return False
        del known[group.group_id]
        del self._by_name[group.topic.id, group.name]
        self._census.remove(self._makers.pop(group, None))
        group.leave_all()
        return True

    def _partitions_deleted(self, topic: Topic, partitions: Sequence[Partition]) -> None:
        for group in self.of_topic(topic):
            group.partitions_deleted(len(partitions))

    def _forget(self, topic: Topic) -> None:
        # The database drops the rows with the topic's.
        for group in self.of_topic(topic):
            self._drop(group)
        self._groups.pop(topic.id, None)
        self._ids_given.pop(topic.id, None)
