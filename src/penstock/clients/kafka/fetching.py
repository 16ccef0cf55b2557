"""Reading batches, as every Kafka client does and as only ours can."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from penstock.clients.kafka.connection import check
from penstock.clients.kafka.fetched import (
    Fetched,
    asking,
    asking_stored,
    bytes_of_first,
    stored,
)
from penstock.kafka.wire import api
from penstock.limits import KAFKA_RESPONSE_BYTES
from penstock.log.header import walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from uuid import UUID

    from penstock.clients.kafka.connection import ClientConnection

FETCH: Final = api("Fetch")
FETCH_STORED: Final = api("FetchStored")

FETCH_BY_ID: Final = 13
"""The first version of a Fetch that names topics by their ids."""

FETCH_BYTES: Final = 1 << 20
WAIT_MS: Final = 500
PATIENCE_S: Final = 120.0
"""How long a broker may take to give what is there: its disk may be slow, or it busy."""


class FetchingClient:
    """The part of a client that reads batches over one connection; see KafkaClient."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    def api_versions(self) -> Mapping[int, tuple[int, int]]:
        """First and last version of each API that the broker offers, by key."""
        return self._connection.versions()

    def fetch(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        max_bytes: int = FETCH_BYTES,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        committed: bool = False,
        topic_id: UUID | None = None,
    ) -> Fetched:
        """Read batches from the one that contains `offset` on; with `committed` below the last
        stable offset, aborted ones among them (see CommittedBatches).

        At the end of the partition it waits for `min_bytes`, up to `max_wait_ms`, and may come back
        with nothing. The first batch is whole even when it is larger than `max_bytes`. With
        `topic_id` no other topic of that name is read: KafkaError UNKNOWN_TOPIC_ID, of brokers that
        know ids in a Fetch (Apache Kafka from 3.1 on).
        """
        newest = None if topic_id is None else FETCH_BY_ID
        while True:
            request = asking(
                *(topic, partition, offset),
                max_bytes=max_bytes,
                max_wait_ms=max_wait_ms,
                min_bytes=min_bytes,
                committed=committed,
                topic_id=topic_id,
            )
            response = self._leader(topic, partition).send(FETCH, request, newest)
            check(response.error_code)
            result = response.responses[0].partitions[0]
            self._check_leader(result.error_code, f"{topic}-{partition}")
            fetched = Fetched.of(result)
            if fetched.batches or not result.records:
                return fetched
            # Other brokers than ours may cut the first batch too.
            max_bytes = max(2 * max_bytes, bytes_of_first(memoryview(result.records)))
            if max_bytes > KAFKA_RESPONSE_BYTES:
                raise ConnectionError(f"{topic}/{partition} holds no batch at offset {offset}")

    def fetch_stored(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        max_bytes: int = FETCH_BYTES,
        committed: bool = False,
        topic_id: UUID | None = None,
    ) -> Fetched:
        """Do as `fetch`, without a wait, for sound batches in whichever encoding they are stored.

        A broker that is not Penstock stores Kafka's. What comes is verified here, as every consumer
        does. Raises DamagedBatchError.
        """
        if FETCH_STORED.key not in self.api_versions():
            return self.fetch(
                *(topic, partition, offset),
                max_bytes=max_bytes,
                committed=committed,
                topic_id=topic_id,
            ).sound()
        request = asking_stored(
            *(topic, partition, offset),
            max_bytes=max_bytes,
            committed=committed,
            topic_id=topic_id,
        )
        return stored(self._connection.send(FETCH_STORED, request)).sound()

    def _leader(self, topic: str, partition: int) -> ClientConnection:  # noqa: ARG002
        """Return the connection to the broker that has a partition."""
        return self._connection

    def _check_leader(self, code: int, place: str) -> None:  # noqa: ARG002
        """Raise KafkaError, and ConnectionError where another broker has the partition by now."""
        check(code)

    def fetch_below(
        self, topic: str, partition: int, offset: int, end: int, *, max_bytes: int = FETCH_BYTES
    ) -> Iterator[memoryview]:
        """Yield runs of whole batches that hold the offsets from `offset` up to below `end`.

        Raises TimeoutError where the broker has nothing at an offset for PATIENCE_S.
        """
        waited_until = time.monotonic() + PATIENCE_S
        while offset < end:
            batches = self.fetch(
                topic, partition, offset, max_bytes=max_bytes, max_wait_ms=WAIT_MS
            ).batches
            for _, header in walk(batches):
                offset = header.next_offset
                waited_until = time.monotonic() + PATIENCE_S
            if batches:
                yield batches
            elif time.monotonic() > waited_until:
                raise TimeoutError(f"{topic}/{partition} has nothing at offset {offset}")
