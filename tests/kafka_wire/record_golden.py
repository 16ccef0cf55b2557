"""Records what real clients send, into `golden/*.hex`: run it as a script after a client changed.

A listener that answers just enough for a client to go on: one broker, one topic of one partition,
empty. It keeps the first request of each API and version; a line is `Api version hex-of-frame`.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import UUID

from patience import PATIENCE_SECONDS
from penstock.kafka import wire
from penstock.kafka.wire import Struct, api

GOLDEN = Path(__file__).parent / "golden"
SNAKE_CASE = partial(re.sub, r"([A-Z])", lambda match: "_" + match[1].lower())
TOPIC = "golden"
TOPIC_ID = UUID("4f1e2d3c-0000-4000-8000-000000000001")

# What a broker of release 4.2 offers of the APIs that are recorded.
OFFERED = {
    "Produce": (0, 13),
    "Fetch": (0, 18),
    "ListOffsets": (0, 11),
    "Metadata": (0, 13),
    "OffsetCommit": (0, 9),
    "OffsetFetch": (0, 9),
    "FindCoordinator": (0, 6),
    "JoinGroup": (0, 9),
    "Heartbeat": (0, 4),
    "LeaveGroup": (0, 5),
    "SyncGroup": (0, 5),
    "ApiVersions": (0, 4),
    "CreateTopics": (2, 7),
    "InitProducerId": (0, 5),
}


class Recorder:
    """The listener, and the frames it saw."""

    def __init__(self) -> None:
        self.frames: dict[tuple[str, int], bytes] = {}
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gone = (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError)
        with contextlib.suppress(*gone):
            while True:
                size = await reader.readexactly(4)
                frame = size + await reader.readexactly(int.from_bytes(size))
                header, request = wire.decode_request(frame)
                self.frames.setdefault((header.api.name, header.version), frame)
                response = self._answer(header.api.name, request)
                if header.api.name == "Fetch":
                    await asyncio.sleep(0.05)
                writer.writelines(
                    wire.encode_response(
                        header.api, header.version, header.correlation_id, response
                    )
                )
                await writer.drain()
        writer.close()

    def _answer(self, name: str, request: Struct) -> Struct:
        answer: Callable[[Struct], Struct] | None = getattr(
            self, f"_answer{SNAKE_CASE(name)}", None
        )
        return answer(request) if answer else api(name).response()

    def _answer_api_versions(self, request: Struct) -> Struct:
        response = api("ApiVersions").response
        keys = [
            response.ApiVersion(api_key=api(name).key, min_version=first, max_version=last)
            for name, (first, last) in OFFERED.items()
        ]
        return response(api_keys=keys)

    def _answer_metadata(self, request: Struct) -> Struct:
        response = api("Metadata").response
        broker = response.MetadataResponseBroker(node_id=0, host="127.0.0.1", port=self.port)
        partition = response.MetadataResponsePartition(
            leader_id=0, leader_epoch=0, replica_nodes=[0], isr_nodes=[0]
        )
        topic = response.MetadataResponseTopic(
            name=TOPIC, topic_id=TOPIC_ID, partitions=[partition]
        )
        return response(brokers=[broker], cluster_id="golden", controller_id=0, topics=[topic])

    def _answer_init_producer_id(self, request: Struct) -> Struct:
        return api("InitProducerId").response(producer_id=7, producer_epoch=0)

    def _answer_produce(self, request: Struct) -> Struct:
        response = api("Produce").response
        topics = [
            response.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    response.PartitionProduceResponse(index=each.index)
                    for each in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
        return response(responses=topics)

    def _answer_list_offsets(self, request: Struct) -> Struct:
        response = api("ListOffsets").response
        partition = response.ListOffsetsPartitionResponse(offset=0, old_style_offsets=[0])
        topic = response.ListOffsetsTopicResponse(name=TOPIC, partitions=[partition])
        return response(topics=[topic])

    def _answer_fetch(self, request: Struct) -> Struct:
        response = api("Fetch").response
        partition = response.PartitionData(last_stable_offset=0, log_start_offset=0)
        topic = response.FetchableTopicResponse(
            topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition]
        )
        return response(responses=[topic] if request.topics else [])

    def _answer_find_coordinator(self, request: Struct) -> Struct:
        response = api("FindCoordinator").response
        place = {"node_id": 0, "host": "127.0.0.1", "port": self.port}
        keys = [response.Coordinator(key=key, **place) for key in request.coordinator_keys]
        return response(**place, coordinators=keys)

    def _answer_join_group(self, request: Struct) -> Struct:
        response = api("JoinGroup").response
        member = response.JoinGroupResponseMember(
            member_id="member-1", metadata=request.protocols[0].metadata
        )
        return response(
            generation_id=1,
            protocol_type="consumer",
            protocol_name=request.protocols[0].name,
            leader="member-1",
            member_id="member-1",
            members=[member],
        )

    def _answer_sync_group(self, request: Struct) -> Struct:
        return api("SyncGroup").response(
            protocol_type="consumer",
            protocol_name=request.protocol_name,
            assignment=request.assignments[0].assignment,
        )

    def _answer_offset_commit(self, request: Struct) -> Struct:
        response = api("OffsetCommit").response
        partition = response.OffsetCommitResponsePartition()
        topic = response.OffsetCommitResponseTopic(name=TOPIC, partitions=[partition])
        return response(topics=[topic])

    def _answer_offset_fetch(self, request: Struct) -> Struct:
        response = api("OffsetFetch").response
        old = response.OffsetFetchResponsePartition(committed_offset=-1, metadata="")
        new = response.OffsetFetchResponsePartitions(committed_offset=-1, metadata="")
        groups = [
            response.OffsetFetchResponseGroup(
                group_id=group.group_id,
                topics=[response.OffsetFetchResponseTopics(name=TOPIC, partitions=[new])],
            )
            for group in request.groups
        ]
        topic = response.OffsetFetchResponseTopic(name=TOPIC, partitions=[old])
        return response(topics=[topic], groups=groups)


RECORDS = [(b"k", b"value"), (None, b""), ("ключ".encode(), None)]


def run_confluent_kafka(server: str) -> None:
    from confluent_kafka import Consumer, Producer

    for idempotent in (True, False):
        producer = Producer(
            {"bootstrap.servers": server, "enable.idempotence": idempotent, "linger.ms": 50}
        )
        for key, value in RECORDS:
            producer.produce(TOPIC, value, key, headers=[("h", b"1")])
        producer.flush(PATIENCE_SECONDS)
    settings = {"bootstrap.servers": server, "group.id": "golden", "session.timeout.ms": 6000}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    for _ in range(8):
        consumer.poll(0.5)
    consumer.close()


def run_kafka_python(server: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(bootstrap_servers=server, linger_ms=50)
    for key, value in RECORDS:
        producer.send(TOPIC, value, key, headers=[("h", b"1")])
    producer.flush(PATIENCE_SECONDS)
    producer.close()
    consumer = KafkaConsumer(
        TOPIC, bootstrap_servers=server, group_id="golden", auto_offset_reset="earliest"
    )
    for _ in range(8):
        consumer.poll(500)
    consumer.close()


def run_aiokafka(server: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def run() -> None:
        async with AIOKafkaProducer(bootstrap_servers=server, linger_ms=50) as producer:
            for key, value in RECORDS:
                await producer.send(TOPIC, value, key, headers=[("h", b"1")])
        consumer = AIOKafkaConsumer(
            TOPIC, bootstrap_servers=server, group_id="golden", auto_offset_reset="earliest"
        )
        async with consumer:
            for _ in range(8):
                await consumer.getmany(timeout_ms=500)

    asyncio.run(run())


CLIENTS = {
    "confluent_kafka": run_confluent_kafka,
    "kafka_python": run_kafka_python,
    "aiokafka": run_aiokafka,
}


async def record(run: Callable[[str], None]) -> Recorder:
    recorder = Recorder()
    listener = await asyncio.start_server(recorder.serve, "127.0.0.1", 0)
    recorder.port = listener.sockets[0].getsockname()[1]
    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    def run_client() -> None:
        try:
            run(f"127.0.0.1:{recorder.port}")
        finally:
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run_client, daemon=True).start()
    await asyncio.wait_for(done.wait(), 60)
    listener.close()
    return recorder


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for name, run in CLIENTS.items():
        recorder = asyncio.run(record(run))
        lines = [
            f"{api_name} {version} {frame.hex()}\n"
            for (api_name, version), frame in sorted(recorder.frames.items())
        ]
        (GOLDEN / f"{name}.hex").write_text("".join(lines))
        print(name, [f"{api_name} {version}" for api_name, version in sorted(recorder.frames)])  # noqa: T201


if __name__ == "__main__":
    main()
