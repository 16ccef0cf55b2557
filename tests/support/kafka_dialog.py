"""A Kafka client without a socket: requests go straight into a session over a real broker."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from conversation import Conversation
from data_folders import with_tables
from parts import content
from patience import PATIENCE_SECONDS
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.kafka.handlers import HANDLERS
from penstock.kafka.session import KafkaSession
from penstock.kafka.wire import (
    Struct,
    api,
    apis,
    correlation_id_of,
    decode_response,
    encode_request,
)
from penstock.session import Buffers

if TYPE_CHECKING:
    from penstock.kafka.wire.messages import FetchResponse, ProduceResponse

TOPIC = "orders"
WAIT_SECONDS = PATIENCE_SECONDS


class FakeTransport:
    peer = "127.0.0.1:50000"
    address = "127.0.0.1"
    local_address = ("127.0.0.1", 9092)

    def __init__(self, *, sends_files: bool) -> None:
        self.sends_files = sends_files

    def write(self, parts: Buffers) -> None:
        raise AssertionError("a Kafka session writes nothing by itself")

    async def writable(self) -> None:
        return

    def close(self, reason: str) -> None:
        raise AssertionError(reason)


class Dialog:
    """One connection of a client that names versions itself."""

    def __init__(
        self, broker: Broker, client_id: str | None = "tester", *, sends_files: bool = False
    ) -> None:
        self.broker = broker
        self.session = KafkaSession(broker, FakeTransport(sends_files=sends_files))
        self.unawaited: list[memoryview] = []
        self.conversation = Conversation(self.session, self._written, self._failed)
        self._awaited: dict[int, asyncio.Future[memoryview]] = {}
        self._client_id = client_id
        self._correlation_ids = itertools.count(1)

    def frame(self, name: str, version: int, request: Struct) -> memoryview:
        correlation_id = next(self._correlation_ids)
        parts = encode_request(apis.api(name), version, correlation_id, self._client_id, request)
        return memoryview(bytearray(b"".join(bytes(part) for part in parts)))

    def send(self, name: str, version: int | None = None, **fields: object) -> asyncio.Future[Any]:
        """Hand a request over now; the answer, in the newest version served, may come later."""
        version = HANDLERS[apis.api(name).key].versions.last if version is None else version
        return self.send_frame(
            name, version, self.frame(name, version, apis.api(name).request(**fields))
        )

    def send_frame(self, name: str, version: int, frame: memoryview) -> asyncio.Future[Any]:
        """Hand a frame over now whose answer is one of that API and version."""
        correlation_id = int.from_bytes(frame[8:12])
        self._awaited[correlation_id] = asyncio.get_running_loop().create_future()
        answer = asyncio.ensure_future(_read(name, version, self._awaited[correlation_id]))
        self.take(frame)
        return answer

    def take(self, frame: memoryview) -> None:
        """Hand a frame over without waiting for anything."""
        self.conversation.take(frame)

    async def ended(self) -> None:
        """Return when no request waits for anything."""
        await self.conversation.pipeline.ended()

    async def ask(self, name: str, version: int | None = None, **fields: object) -> Any:
        async with asyncio.timeout(WAIT_SECONDS):
            return await self.send(name, version, **fields)

    async def create_topic(self, name: str = TOPIC, partitions: int = 1, **config: str) -> UUID:
        request = api("CreateTopics").request
        configs = [
            request.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in config.items()
        ]
        topic = request.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=-1, configs=configs
        )
        (result,) = (await self.ask("CreateTopics", topics=[topic])).topics
        assert result.error_code == 0, result.error_message
        topic_id: UUID = result.topic_id
        return topic_id

    def produce_fields(
        self, *parts: tuple[int, bytes | bytearray | None], topic: str = TOPIC, acks: int = -1
    ) -> dict[str, object]:
        request = api("Produce").request
        partition_data = [
            request.PartitionProduceData(index=index, records=records) for index, records in parts
        ]
        data = request.TopicProduceData(name=topic, partition_data=partition_data)
        return {"acks": acks, "timeout_ms": 1000, "topic_data": [data]}

    async def produce(
        self, batch: bytes | bytearray | None, partition: int = 0, **options: object
    ) -> ProduceResponse.PartitionProduceResponse:
        """Produce one batch, in a version that names topics, and return its part of the answer."""
        version = options.pop("version", 12)
        assert isinstance(version, int)
        fields = self.produce_fields((partition, batch), **options)  # type: ignore[arg-type]  # any
        response: ProduceResponse = await self.ask("Produce", version, **fields)
        return response.responses[0].partition_responses[0]

    def fetch_fields(
        self, *parts: tuple[int, int], topic: str = TOPIC, **options: object
    ) -> dict[str, object]:
        request = api("Fetch").request
        partition_max_bytes = options.pop("partition_max_bytes", 1 << 20)
        assert isinstance(partition_max_bytes, int)
        partitions = [
            request.FetchPartition(
                partition=index, fetch_offset=offset, partition_max_bytes=partition_max_bytes
            )
            for index, offset in parts
        ]
        fields = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **options}
        return {**fields, "topics": [request.FetchTopic(topic=topic, partitions=partitions)]}

    async def fetch(
        self, offset: int, partition: int = 0, **options: object
    ) -> FetchResponse.PartitionData:
        fields = self.fetch_fields((partition, offset), **options)  # type: ignore[arg-type]  # any
        response: FetchResponse = await self.ask("Fetch", 12, **fields)
        return response.responses[0].partitions[0]

    def _written(self, parts: Buffers) -> None:
        data = memoryview(content(parts))
        while data:
            size = 4 + int.from_bytes(data[:4])
            awaited = self._awaited.pop(correlation_id_of(data[:size]), None)
            if awaited is None:
                self.unawaited.append(data[:size])
            elif not awaited.done():
                awaited.set_result(data[:size])
            data = data[size:]

    def _failed(self, error: Exception) -> None:
        for awaited in self._awaited.values():
            awaited.set_exception(error)
        self._awaited.clear()


async def _read(name: str, version: int, frame: asyncio.Future[memoryview]) -> Any:
    return decode_response(apis.api(name), version, await frame)[1]


@asynccontextmanager
async def kafka_broker(folder: Path, **settings: object) -> AsyncIterator[Broker]:
    given = BrokerSettings(**settings)  # type: ignore[arg-type]  # any
    broker = await Broker.open(with_tables(folder), given)
    try:
        yield broker
    finally:
        await broker.close()
