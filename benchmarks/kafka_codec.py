"""How quick the Kafka codec is, beside kio and kafka-python, in one run: microseconds and ratios.

python benchmarks/kafka_codec.py
"""

from __future__ import annotations

import datetime as dt
import io
import time
from collections.abc import Callable
from typing import Any

import kio.index
import kio.serial
from kafka.protocol.consumer.fetch import FetchRequest, FetchResponse
from kafka.protocol.metadata.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.producer.produce import ProduceRequest, ProduceResponse

from penstock.kafka.wire import AnyApi, MessageType, Struct, api

ROUNDS = 7
KAFKA_PYTHON = {
    "MetadataRequest": MetadataRequest,
    "MetadataResponse": MetadataResponse,
    "ProduceRequest": ProduceRequest,
    "ProduceResponse": ProduceResponse,
    "FetchRequest": FetchRequest,
    "FetchResponse": FetchResponse,
}


def microseconds(function: Callable[[], object]) -> float:
    """The best of some rounds, each of about 20 ms."""
    start = time.perf_counter()
    function()
    once = time.perf_counter() - start
    times = max(1, int(0.02 / max(once, 1e-7)))
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(times):
            function()
        best = min(best, time.perf_counter() - start)
    return best / times * 1e6


class Subject:
    """One message in one version, for all three codecs."""

    def __init__(self, of: AnyApi, kind: str, version: int, message: Struct) -> None:
        self.type: MessageType[Any] = getattr(of, kind)
        self.version = version
        self.message = message
        self.encoded = b"".join(self.type.encode(message, version))
        load = getattr(kio.index, f"load_{kind}_schema")
        self.kio_schema = load(of.key, version)
        self.kafka_python: Any = KAFKA_PYTHON[f"{of.name}{kind.capitalize()}"]

    def decode(self) -> list[Callable[[], object]]:
        read = kio.serial.entity_reader(self.kio_schema)
        view = memoryview(bytearray(self.encoded))
        return [
            lambda: self.type.decode(view, self.version),
            lambda: read(self.encoded, 0),
            lambda: self.kafka_python.decode(self.encoded, version=self.version),
        ]

    def encode(self) -> list[Callable[[], object]]:
        write = kio.serial.entity_writer(self.kio_schema)
        theirs, _ = kio.serial.entity_reader(self.kio_schema)(self.encoded, 0)
        other = self.kafka_python.decode(self.encoded, version=self.version)
        other._header = None

        def write_kio() -> bytes:
            out = io.BytesIO()
            write(out, theirs)
            return out.getvalue()

        return [
            lambda: self.type.encode(self.message, self.version),
            write_kio,
            lambda: other.encode(version=self.version),
        ]


def metadata_request() -> Struct:
    request = api("Metadata").request
    return request(topics=[request.MetadataRequestTopic(name="orders")])


def metadata_response(topics: int, partitions: int) -> Struct:
    response = api("Metadata").response
    return response(
        brokers=[response.MetadataResponseBroker(node_id=0, host="127.0.0.1", port=9092)],
        cluster_id="kafka-cluster",
        controller_id=0,
        topics=[
            response.MetadataResponseTopic(
                name=f"topic-{number}",
                partitions=[
                    response.MetadataResponsePartition(
                        partition_index=index, leader_id=0, replica_nodes=[0], isr_nodes=[0]
                    )
                    for index in range(partitions)
                ],
            )
            for number in range(topics)
        ],
    )


def produce_request(size: int) -> Struct:
    request = api("Produce").request
    data = request.PartitionProduceData(index=0, records=bytes(size))
    topic = request.TopicProduceData(name="orders", partition_data=[data])
    return request(acks=-1, timeout_ms=30000, topic_data=[topic])


def produce_response() -> Struct:
    response = api("Produce").response
    partition = response.PartitionProduceResponse(base_offset=5, log_start_offset=0)
    topic = response.TopicProduceResponse(name="orders", partition_responses=[partition])
    return response(responses=[topic])


def fetch_request() -> Struct:
    request = api("Fetch").request
    partition = request.FetchPartition(fetch_offset=5, partition_max_bytes=1 << 20)
    topic = request.FetchTopic(topic="orders", partitions=[partition])
    return request(max_wait_ms=500, min_bytes=1, topics=[topic])


def fetch_response(size: int) -> Struct:
    response = api("Fetch").response
    partition = response.PartitionData(high_watermark=9, records=bytes(size))
    topic = response.FetchableTopicResponse(topic="orders", partitions=[partition])
    return response(responses=[topic])


def subjects() -> list[tuple[str, list[Callable[[], object]]]]:
    metadata, produce, fetch = api("Metadata"), api("Produce"), api("Fetch")
    return [
        (
            "decode Metadata request v12, 1 topic",
            Subject(metadata, "request", 12, metadata_request()).decode(),
        ),
        (
            "decode Produce request v9, 100 kB",
            Subject(produce, "request", 9, produce_request(100_000)).decode(),
        ),
        ("decode Fetch request v12", Subject(fetch, "request", 12, fetch_request()).decode()),
        (
            "encode Metadata response v12, 50 x 1",
            Subject(metadata, "response", 12, metadata_response(50, 1)).encode(),
        ),
        (
            "encode Metadata response v12, 50 x 4",
            Subject(metadata, "response", 12, metadata_response(50, 4)).encode(),
        ),
        (
            "decode Metadata response v12, 50 x 4",
            Subject(metadata, "response", 12, metadata_response(50, 4)).decode(),
        ),
        (
            "encode Produce response v9",
            Subject(produce, "response", 9, produce_response()).encode(),
        ),
        (
            "encode Fetch response v12, 100 kB",
            Subject(fetch, "response", 12, fetch_response(100_000)).encode(),
        ),
        (
            "encode Produce request v9, 100 kB",
            Subject(produce, "request", 9, produce_request(100_000)).encode(),
        ),
        (
            "decode Fetch response v12, 100 kB",
            Subject(fetch, "response", 12, fetch_response(100_000)).decode(),
        ),
    ]


def main() -> None:
    print(f"{dt.date.today()}, best of {ROUNDS}, microseconds (times as long as Penstock)")
    print(f"{'':40}{'penstock':>9}{'kio':>18}{'kafka-python':>18}")
    for name, functions in subjects():
        ours, *others = [microseconds(function) for function in functions]
        ratios = "".join(f"{other:10.1f} ({other / ours:4.1f}x)" for other in others)
        print(f"{name:40}{ours:9.1f}{ratios}")
    building = microseconds(lambda: metadata_response(50, 4))
    print(f"{'build that response of 50 x 4':40}{building:9.1f}")


if __name__ == "__main__":
    main()
