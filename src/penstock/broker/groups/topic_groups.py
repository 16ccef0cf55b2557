"""Consumer groups whose members divide a topic's partitions at once, without a round of voting.

A group belongs to one topic and lasts: its name and number are in the database. Who is in it does
not: members are connections, and a broker that starts again has none. Partition i belongs to member
i mod n in the order of joining.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.errors import GroupExistsError, UnknownGroupError, UnknownMemberError
from penstock.metadata.topic_groups import TopicGroupRow

if TYPE_CHECKING:
    from collections.abc import Hashable
    from uuid import UUID

    from penstock.broker.topics.catalogue import Topics
    from penstock.broker.topics.topic import Topic
    from penstock.metadata.topic_groups import TopicGroupRepository


class TopicGroup:
    """One group of one topic. A member is whatever stands for one connection."""

    def __init__(self, topic: Topic, group_id: int, name: str) -> None:
        self.topic = topic
        self.group_id = group_id
        self.name = name
        self._members: dict[Hashable, int] = {}
        self._generations_sent: dict[Hashable, int] = {}
        self._members_ever = 0
        self._changes = 0

    @property
    def generation(self) -> int:
        """A number that grows whenever the partitions are divided anew."""
        # Partitions are only ever added, so their count is part of the number.
        return self._changes + len(self.topic.partitions)

    @property
    def members(self) -> dict[int, list[int]]:
        """The partitions of each member, by its number within the group."""
        return {number: self._share(rank) for rank, number in enumerate(self._members.values())}

    def assigned(self, member: Hashable) -> list[int] | None:
        """The partitions of this member, or None when it is not in the group."""
        if member not in self._members:
            return None
        return self._share(list(self._members).index(member))

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
        return partition in (self.assigned(member) or ())

    def join(self, member: Hashable) -> None:
        """Add a member; one that is in already stays as it is."""
        if member in self._members:
            return
        self._members[member] = self._members_ever
        self._members_ever += 1
        self._changes += 1
        assert self._members_ever >= len(self._members), "a number is given once"

    def leave(self, member: Hashable) -> None:
        """Give a member's partitions to the others. Raises UnknownMemberError."""
        if self._members.pop(member, None) is None:
            raise UnknownMemberError(f"not a member of group {self.name}")
        self._generations_sent.pop(member, None)
        self._changes += 1

    def _share(self, rank: int) -> list[int]:
        return list(range(rank, len(self.topic.partitions), len(self._members)))


class TopicGroups:
    """The groups of all topics. What `create` and `delete` did is durable when they return."""

    def __init__(self, repository: TopicGroupRepository, topics: Topics) -> None:
        self._repository = repository
        self._topics = topics
        self._groups: dict[UUID, dict[int, TopicGroup]] = {}
        self._ids_given: dict[UUID, int] = {}
        topics.on_delete(self._forget)

    def load(self) -> None:
        """Read the groups from the database once the topics are there; blocks."""
        topics = {topic.id: topic for topic in self._topics.all()}
        for row in self._repository.all():
            self._remember(TopicGroup(topics[row.topic_id], row.group_id, row.name))

    def of_topic(self, topic: Topic) -> list[TopicGroup]:
        return list(self._groups.get(topic.id, {}).values())

    def all(self) -> list[TopicGroup]:
        return [group for groups in self._groups.values() for group in groups.values()]

    def get(self, topic: Topic, group: int | str) -> TopicGroup:
        """Return the group of this number or name. Raises UnknownGroupError."""
        for candidate in self.of_topic(topic):
            if group in {candidate.group_id, candidate.name}:
                return candidate
        raise UnknownGroupError(f"topic {topic.name.kafka} has no group {group!r}")

    def of_member(self, member: Hashable) -> list[TopicGroup]:
        return [group for group in self.all() if group.assigned(member) is not None]

    async def create(self, topic: Topic, name: str) -> TopicGroup:
        """Make a group; its number is the next of its topic. Raises GroupExistsError."""
        if any(group.name == name for group in self.of_topic(topic)):
            raise GroupExistsError(f"topic {topic.name.kafka} has a group {name!r} already")
        # Remembered before the write, so that nobody else takes the name or the number meanwhile.
        group = self._remember(TopicGroup(topic, self._ids_given.get(topic.id, 0), name))
        try:
            await self._repository.insert(TopicGroupRow(topic.id, group.group_id, name))
        except BaseException:
            self._groups.get(topic.id, {}).pop(group.group_id, None)
            raise
        return group

    async def delete(self, group: TopicGroup) -> None:
        """Delete a group; its members find themselves in none. Raises UnknownGroupError."""
        known = self._groups.get(group.topic.id, {})
        if known.pop(group.group_id, None) is None:
            raise UnknownGroupError(f"group {group.name!r} was deleted")
        await self._repository.delete(group.topic.id, group.group_id)

    def leave_all(self, member: Hashable) -> None:
        """A connection is gone, and with it its place in every group."""
        for group in self.of_member(member):
            group.leave(member)

    def _remember(self, group: TopicGroup) -> TopicGroup:
        groups = self._groups.setdefault(group.topic.id, {})
        assert group.group_id not in groups, "a number is given once"
        groups[group.group_id] = group
        self._ids_given[group.topic.id] = group.group_id + 1
        return group

    def _forget(self, topic: Topic) -> None:
        # The database drops the rows with the topic's.
        self._groups.pop(topic.id, None)
        self._ids_given.pop(topic.id, None)
