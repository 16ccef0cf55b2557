"""Connections to the brokers of a cluster: which one leads a partition, or coordinates a group.

A cluster of one broker is spoken to over the first connection alone, whatever address the broker
gives itself: it may be reached by another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.clients.kafka.connection import check
from penstock.kafka.wire import ErrorCode, api

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.clients.kafka.connection import ClientConnection
    from penstock.kafka.wire.messages import MetadataResponse

FIND_COORDINATOR: Final = api("FindCoordinator")
METADATA: Final = api("Metadata")

_MOVED: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)
GROUP: Final = 0
TRANSACTION: Final = 1
"""What is coordinated, by its kind of key."""


class Leaders:
    """Of what one client asks about; places are topics with partitions."""

    def __init__(self, first: ClientConnection) -> None:
        self._first = first
        self._others: dict[str, ClientConnection] = {}
        self._addresses: dict[tuple[str, int], str | None] = {}
        """Of leaders, None where there is one broker only."""

    def close(self) -> None:
        self._addresses.clear()
        for connection in self._others.values():
            connection.close()
        self._others.clear()

    def of(self, topic: str, partition: int) -> ClientConnection:
        """Return the connection to a partition's leader. Raises KafkaError and OSError."""
        (connection,) = self.grouped([(topic, partition)])
        return connection

    def grouped(
        self, places: Iterable[tuple[str, int]]
    ) -> Mapping[ClientConnection, list[tuple[str, int]]]:
        """Return the places of each leader. Raises KafkaError and OSError."""
        places = list(places)
        self._learn({place[0] for place in places if place not in self._addresses})
        found: dict[ClientConnection, list[tuple[str, int]]] = {}
        for place in places:
            # Of a partition that is not there, any broker says so.
            connection = self._to(self._addresses.get(place))
            found.setdefault(connection, []).append(place)
        return found

    def coordinator(self, name: str, kind: int = GROUP) -> ClientConnection:
        """Return the connection to the broker that coordinates a group, or a transactional id."""
        request = FIND_COORDINATOR.request(key=name, key_type=kind, coordinator_keys=[name])
        response = self._first.send(FIND_COORDINATOR, request)
        found = response.coordinators[0] if response.coordinators else response
        self.check(found.error_code, f"coordinator of {name}")
        several = len(self._brokers()) > 1
        return self._to(f"{found.host}:{found.port}" if several else None)

    def all(self) -> list[ClientConnection]:
        """Return a connection to each broker."""
        brokers = self._brokers()
        return [self._to(each) for each in brokers] if len(brokers) > 1 else [self._first]

    def _brokers(self) -> list[str]:
        brokers = self._first.send(METADATA, METADATA.request(topics=[])).brokers
        return [f"{each.host}:{each.port}" for each in brokers]

    def check(self, code: int, detail: str | None = None) -> None:
        """Raise KafkaError, or ConnectionError where another broker is to be asked."""
        if code in _MOVED:
            self.close()
            raise ConnectionError(f"{detail}: {ErrorCode(code).name}, so another broker is asked")
        check(code, detail)

    def _learn(self, topics: Iterable[str]) -> None:
        asked = [METADATA.request.MetadataRequestTopic(name=name) for name in topics]
        if not asked:
            return
        request = METADATA.request(topics=asked, allow_auto_topic_creation=False)
        response = self._first.send(METADATA, request)
        brokers = {each.node_id: f"{each.host}:{each.port}" for each in response.brokers}
        for topic in response.topics:
            for each in topic.partitions:
                place = topic.name or "", each.partition_index
                self._addresses[place] = _address(brokers, each)

    def _to(self, address: str | None) -> ClientConnection:
        if address is None:
            return self._first
        if address not in self._others:
            self._others[address] = self._first.beside(address)
        return self._others[address]


def _address(
    brokers: Mapping[int, str], partition: MetadataResponse.MetadataResponsePartition
) -> str | None:
    if len(brokers) == 1:
        return None
    if partition.leader_id not in brokers:
        raise ConnectionError(f"partition {partition.partition_index} has no leader just now")
    return brokers[partition.leader_id]
