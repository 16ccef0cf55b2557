"""Open and aborted transactions are no rows, whichever way the bytes come. Needs no Spark."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from broker_process import BrokerProcess
from patience import PATIENCE_SECONDS
from penstock.clients.kafka.client import KafkaClient
from penstock.pipeline.source import options
from penstock.pipeline.source.cluster import KafkaCluster
from penstock.pipeline.source.options import OptionError
from penstock.pipeline.source.planning import Planner
from penstock.pipeline.source.tasks import read_task
from spark_topics import create


def transactional(address: str, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": address, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(PATIENCE_SECONDS)
    return producer


def write(producer: Producer, topic: str, *values: str) -> None:
    for value in values:
        producer.produce(topic, value, partition=0)
        producer.flush(PATIENCE_SECONDS)


def rows(address: str, topic: str, **given: str) -> list[str]:
    parsed = options.parse(
        {"penstock.bootstrap.servers": address, "subscribe": topic, **given}, streaming=False
    )
    with KafkaCluster(parsed) as cluster:
        planner = Planner(parsed, cluster)
        tasks = planner.tasks(planner.starting(), planner.ending())
        batches = [batch for task in tasks for batch in read_task(task, parsed)]
    return [value.decode() for batch in batches for value in batch.column("value").to_pylist()]


@pytest.mark.parametrize("mode", ["log", "wire"])
def test_what_is_not_committed_is_no_row(shared_server: BrokerProcess, mode: str) -> None:
    address = shared_server.kafka
    topic = create(address)
    first, second = (transactional(address, f"{topic}-{name}") for name in ("a", "b"))
    first.begin_transaction()
    second.begin_transaction()
    write(first, topic, "committed 0")
    write(second, topic, "aborted 1")
    write(first, topic, "committed 2")
    second.abort_transaction(PATIENCE_SECONDS)
    write(first, topic, "committed 4")
    first.commit_transaction(PATIENCE_SECONDS)
    second.begin_transaction()
    write(second, topic, "aborted 6", "aborted 7")
    first.begin_transaction()
    write(first, topic, "committed 8")
    first.commit_transaction(PATIENCE_SECONDS)
    # Nothing is read from the first message of an open transaction on.
    assert rows(address, topic, readMode=mode) == ["committed 0", "committed 2", "committed 4"]
    everything = rows(
        address, topic, readMode=mode, **{"kafka.isolation.level": "read_uncommitted"}
    )
    assert everything[-3:] == ["aborted 6", "aborted 7", "committed 8"]
    second.abort_transaction(PATIENCE_SECONDS)
    committed = [f"committed {number}" for number in (0, 2, 4, 8)]
    assert rows(address, topic, readMode=mode) == committed
    start = f'{{"{topic}": {{"0": 7}}}}'
    assert rows(address, topic, readMode=mode, startingOffsets=start) == ["committed 8"]
    with KafkaClient(address) as client:
        client.delete_topic(topic)


def test_the_level_of_isolation_is_that_of_kafka() -> None:
    given = {"penstock.bootstrap.servers": "h:1", "subscribe": "t"}
    assert options.parse(given, streaming=False).committed
    with pytest.raises(OptionError, match="read_committed, read_uncommitted"):
        options.parse({**given, "kafka.isolation.level": "serializable"}, streaming=False)
