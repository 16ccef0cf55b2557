"""Which broker of a cluster is asked for a partition."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.clients.kafka.connection import ClientConnection, KafkaError
from penstock.clients.kafka.leaders import METADATA, Leaders
from penstock.kafka.wire import ErrorCode


class ClusterOf(ClientConnection):
    """The first broker of a cluster, which says who leads the partitions of topic `t`."""

    def __init__(self, leaders: list[int], brokers: int) -> None:
        super().__init__("first:9092", "test", 1)
        self.leaders = leaders
        self.brokers = brokers
        self.asked = 0

    def send(self, _api: Any, request: Any) -> Any:
        self.asked += 1
        types = METADATA.response
        partitions = [
            types.MetadataResponsePartition(partition_index=index, leader_id=leader)
            for index, leader in enumerate(self.leaders)
        ]
        brokers = [
            types.MetadataResponseBroker(node_id=node, host=f"b{node}", port=9092)
            for node in range(self.brokers)
        ]
        topics = [
            types.MetadataResponseTopic(name=each.name, partitions=partitions)
            for each in request.topics
        ]
        return types(brokers=brokers, topics=topics)

    def beside(self, server: str) -> Any:
        return ClientConnection(server, "test", 1)


def test_each_leader_is_asked_for_its_own_partitions() -> None:
    first = ClusterOf([1, 0, 1], brokers=2)
    leaders = Leaders(first)
    grouped = leaders.grouped([("t", 0), ("t", 1), ("t", 2)])
    assert sorted(grouped.values()) == [[("t", 0), ("t", 2)], [("t", 1)]]
    assert leaders.of("t", 0) is leaders.of("t", 2) is not leaders.of("t", 1)
    assert first.asked == 1


def test_one_broker_is_spoken_to_where_it_was_found() -> None:
    first = ClusterOf([0, 0], brokers=1)
    assert Leaders(first).of("t", 1) is first


def test_a_partition_that_moved_is_looked_for_anew() -> None:
    first = ClusterOf([0], brokers=2)
    leaders = Leaders(first)
    before = leaders.of("t", 0)
    first.leaders = [1]
    with pytest.raises(ConnectionError, match="t-0: NOT_LEADER_OR_FOLLOWER"):
        leaders.check(ErrorCode.NOT_LEADER_OR_FOLLOWER, "t-0")
    assert leaders.of("t", 0) is not before
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
        leaders.check(ErrorCode.OFFSET_OUT_OF_RANGE, "t-0")


def test_a_partition_without_a_leader_is_waited_for() -> None:
    with pytest.raises(ConnectionError, match="partition 0 has no leader"):
        Leaders(ClusterOf([-1], brokers=2)).of("t", 0)
