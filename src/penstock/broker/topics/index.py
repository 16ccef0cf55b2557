"""The topics of a node in memory, found by each of their names at the same cost however many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.errors import TopicNumberTakenError
from penstock.broker.topics.numbers import LowestFree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from penstock.broker.topics.changes import TopicChanges
    from penstock.broker.topics.names import NamespaceName, TopicName
    from penstock.broker.topics.topic import Topic

_NOTHING: Mapping[int, Topic] = {}


class TopicIndex:
    """What is added is unique in each of its names; whoever adds has checked that."""

    def __init__(self, changes: TopicChanges) -> None:
        self.changes = changes
        self._by_name: dict[TopicName, Topic] = {}
        self._by_kafka_name: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}
        self._by_iggy_id: dict[NamespaceName, dict[int, Topic]] = {}
        self._free_iggy_ids: dict[NamespaceName, LowestFree] = {}
        """Of the namespaces in which a topic was made since the start."""

    def by_name(self, name: TopicName) -> Topic | None:
        return self._by_name.get(name)

    def by_kafka_name(self, name: str) -> Topic | None:
        return self._by_kafka_name.get(name)

    def by_id(self, topic_id: UUID) -> Topic | None:
        return self._by_id.get(topic_id)

    def by_iggy_id(self, namespace: NamespaceName, number: int) -> Topic | None:
        return self._by_iggy_id.get(namespace, _NOTHING).get(number)

    def all(self) -> list[Topic]:
        return list(self._by_id.values())

    def in_namespace(self, namespace: NamespaceName) -> list[Topic]:
        return list(self._by_iggy_id.get(namespace, _NOTHING).values())

    def add(self, topic: Topic) -> None:
        self._by_id[topic.id] = topic
        self._add_names(topic)

    def remove(self, topic: Topic) -> None:
        del self._by_id[topic.id]
        self._remove_names(topic)
        self.give_back_iggy_id(topic.name.in_namespace, topic.iggy_topic_id)

    def rename(self, topic: Topic, name: TopicName) -> None:
        """Give a topic a name that is free, and that its number is free in."""
        self._remove_names(topic)
        if name.in_namespace != topic.name.in_namespace:
            for namespace in (name.in_namespace, topic.name.in_namespace):
                self._free_iggy_ids.pop(namespace, None)
        topic.name = name
        self._add_names(topic)

    def check_iggy_id(self, namespace: NamespaceName, number: int | None) -> None:
        """Raise TopicNumberTakenError where a topic of the namespace has this number."""
        if number in self._by_iggy_id.get(namespace, _NOTHING):
            raise TopicNumberTakenError(f"a topic of {namespace.iggy} has the number {number}")

    def claim_iggy_id(self, namespace: NamespaceName, number: int | None) -> None:
        """Take this number, if it is one, for a topic that is made now.

        Raises TopicNumberTakenError where one has it that is made or is being made.
        """
        if number is not None and not self._free_ids(namespace).claim(number):
            raise TopicNumberTakenError(f"a topic of {namespace.iggy} has the number {number}")

    def take_iggy_id(self, namespace: NamespaceName, claimed: int | None) -> int:
        """Return what was claimed, or the lowest number that no topic of the namespace has."""
        return self._free_ids(namespace).take() if claimed is None else claimed

    def _free_ids(self, namespace: NamespaceName) -> LowestFree:
        free = self._free_iggy_ids.get(namespace)
        if free is None:
            taken = self._by_iggy_id.get(namespace, _NOTHING)
            free = self._free_iggy_ids[namespace] = LowestFree(taken)
        return free

    def give_back_iggy_id(self, namespace: NamespaceName, number: int) -> None:
        """Let the number of a topic that is gone, or was not made after all, be given again."""
        if namespace in self._free_iggy_ids:
            self._free_iggy_ids[namespace].give_back(number)

    def _add_names(self, topic: Topic) -> None:
        self._by_name[topic.name] = topic
        self._by_kafka_name[topic.name.kafka] = topic
        self._by_iggy_id.setdefault(topic.name.in_namespace, {})[topic.iggy_topic_id] = topic
        self.changes.appeared(topic)

    def _remove_names(self, topic: Topic) -> None:
        self.changes.gone(topic)
        del self._by_name[topic.name]
        del self._by_kafka_name[topic.name.kafka]
        of_namespace = self._by_iggy_id[topic.name.in_namespace]
        del of_namespace[topic.iggy_topic_id]
        if not of_namespace:
            del self._by_iggy_id[topic.name.in_namespace]
