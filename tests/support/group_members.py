"""The members of one Kafka group, each over a connection of its own, which speak all at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.kafka.wire import api, decode_response
from wire_clients import connect, kafka_request, receive_exactly

JOIN, SYNC, HEARTBEAT = ("JoinGroup", 3), ("SyncGroup", 2), ("Heartbeat", 2)
METADATA_BYTES = 40
ASSIGNMENT_BYTES = 100


class GroupMembers:
    """So many consumers of a group, of whom nobody has joined yet."""

    def __init__(self, address: str, group: str, count: int, session_seconds: int = 30) -> None:
        self.sockets = [connect(address) for _ in range(count)]
        self.ids = [""] * count
        self.generation = -1
        self.errors: list[int] = []
        """What the members were told last, one each."""
        self._group = group
        self._session_ms = 1000 * session_seconds

    def join(self) -> None:
        """Join, or join again, and wait for the generation that begins."""
        self.ask(map(self._join_request, self.ids))
        answers = self.hear(*JOIN)
        self.ids = [each.member_id for each in answers]
        self.generation = max(each.generation_id for each in answers)
        self._leader = max(answers, key=lambda each: len(each.members)).leader

    def sync(self, assignment_bytes: int = ASSIGNMENT_BYTES) -> None:
        """Have the leader assign, and wait until every member has its assignment."""
        request = api(SYNC[0]).request
        assigned = bytes(assignment_bytes)
        all_of_them = [
            request.SyncGroupRequestAssignment(member_id=each, assignment=assigned)
            for each in self.ids
        ]
        self.ask(
            kafka_request(
                *SYNC,
                group_id=self._group,
                generation_id=self.generation,
                member_id=each,
                assignments=all_of_them if each == self._leader else [],
            )
            for each in self.ids
        )
        self.hear(*SYNC)

    def heartbeats(self) -> list[bytes]:
        """A request of each member."""
        said = {"group_id": self._group, "generation_id": self.generation}
        return [kafka_request(*HEARTBEAT, **said, member_id=each) for each in self.ids]

    def ask(self, requests: Iterable[bytes]) -> None:
        """Send a request of each member."""
        for connection, request in zip(self.sockets, requests, strict=True):
            connection.sendall(request)

    def hear(self, name: str, version: int) -> list[Any]:
        """Wait for an answer to each member."""
        answers = []
        for connection in self.sockets:
            size = receive_exactly(connection, 4)
            frame = size + receive_exactly(connection, int.from_bytes(size))
            answers.append(decode_response(api(name), version, memoryview(frame))[1])
        self.errors = [each.error_code for each in answers]
        return answers

    def close(self) -> None:
        for connection in self.sockets:
            connection.close()

    def _join_request(self, member_id: str) -> bytes:
        protocol = api(JOIN[0]).request.JoinGroupRequestProtocol
        return kafka_request(
            *JOIN,
            group_id=self._group,
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=self._session_ms,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[protocol(name="range", metadata=bytes(METADATA_BYTES))],
        )
