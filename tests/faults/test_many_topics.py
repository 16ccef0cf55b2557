"""Goal: a client that creates or deletes very many topics at once takes little of others' time.

Method: clients of all three protocols ask one thing at a time beside it, in a process of their own.
The bar leaves room for a machine that others use too, in the median of what each client waits.
"""

from __future__ import annotations

import time

import pytest

from broker_process import BrokerProcess
from penstock.iggy.wire import requests as iggy
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.identifiers import Identifier
from penstock.kafka.wire import api
from stand import PROTOCOLS, Stand
from wire_clients import IggyWire, KafkaWire

MEDIAN_SECONDS = 0.05
BUSY_MEDIAN_SECONDS = 0.5
"""What is accepted on a machine that others use too; what is looked for takes seconds."""
STREAM = Identifier("doomed")
SPANS = ("creation", "deletion", "removal")


def create(kafka: KafkaWire, names: list[str]) -> None:
    types = api("CreateTopics").request
    topics = [
        types.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names
    ]
    answer = kafka.ask("CreateTopics", 5, topics=topics, timeout_ms=60_000)
    assert {each.error_code for each in answer.topics} == {0}


def delete(kafka: KafkaWire, names: list[str]) -> None:
    answer = kafka.ask("DeleteTopics", 4, topic_names=names, timeout_ms=60_000)
    assert {each.error_code for each in answer.responses} == {0}


def fill_stream(client: IggyWire, count: int) -> None:
    client.ask(Command.CREATE_STREAM, iggy.CreateStream("doomed", {}).encode())
    for number in range(count):
        client.ask(
            Command.CREATE_TOPIC, iggy.CreateTopic(STREAM, 1, f"topic-{number}", {}).encode()
        )


def topics_left(broker: BrokerProcess) -> int:
    return sum(1 for _ in (broker.data_folder / "topics").iterdir())


@pytest.mark.parametrize(
    ("by_kafka", "by_iggy", "median_seconds"),
    [
        (60, 4, BUSY_MEDIAN_SECONDS),
        pytest.param(
            3_000, 300, MEDIAN_SECONDS, marks=[pytest.mark.soak, pytest.mark.timeout(1200)]
        ),
    ],
)
def test_many_topics_at_once_take_nobody_elses_time(
    stand: Stand, by_kafka: int, by_iggy: int, median_seconds: float
) -> None:
    """Bar: the median of what each neighbour waits stays small, and nothing of them is left."""
    stand.allow("more lines like this were left out")
    broker = stand.start()
    kafka = KafkaWire(broker.kafka, "t", 600)
    kafka.ping()
    client = IggyWire(broker.iggy, "t", 600)
    names = [f"doomed-{number}" for number in range(by_kafka)]
    with stand.probing(broker) as probes:
        kept = topics_left(broker)
        fill_stream(client, by_iggy)
        with probes.span("creation"):
            create(kafka, names)
        with probes.span("deletion"):
            delete(kafka, names)
            client.ask(Command.DELETE_STREAM, iggy.StreamRequest(STREAM).encode())
        with probes.span("removal"):
            deadline = time.monotonic() + 120
            while topics_left(broker) > kept and time.monotonic() < deadline:
                time.sleep(0.05)
        print(*(f"{name}: {probes.latencies(name).of('ping')}" for name in SPANS), sep="\n")  # noqa: T201
        for name in SPANS:
            for protocol in PROTOCOLS:
                waited = probes.latencies(name).of("ping", protocol)
                if waited.seconds:  # What is over in a moment was in nobody's way.
                    assert waited.p50 < median_seconds, probes.report()
    assert topics_left(broker) == kept
    client.socket.close()
    kafka.socket.close()
