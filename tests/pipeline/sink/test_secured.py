"""Goal: the sink writes over TLS and with a log-in, wherever a broker asks for them.

Method: Penstock behind a proxy that speaks TLS, without a Spark. `soak` has two brokers of Apache
Kafka that know what their users may do, and Spark writes to them in batches and streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from broker_process import BrokerProcess
from epoch_query import PARTITIONS, EpochQuery, expected
from penstock.pipeline.sink.errors import SinkError, UnreachableError
from penstock.pipeline.sink.starting import ask_broker
from secured_kafka import MODULES, PASSWORD, WRITER, SecuredKafka
from spark_topics import committed, create
from tls_proxy import tls_in_front_of

SERVERS = "penstock.bootstrap.servers"
ROWS = 3_000


def values(address: str, topic: str) -> list[bytes]:
    parts = [committed(address, topic, each) for each in range(PARTITIONS)]
    return sorted(record.value or b"" for part in parts for record in part)


def test_epochs_are_committed_over_tls(shared_server: BrokerProcess, tmp_path: Path) -> None:
    topic = create(shared_server.kafka, PARTITIONS)
    with tls_in_front_of(shared_server.kafka, tmp_path) as (address, certificate):
        query = EpochQuery(f"kafka+ssl://{address}", topic, tlsCaFile=str(certificate))
        ask_broker(query.options)
        assert query.commit(0, query.tasks(0)) is True
        assert values(shared_server.kafka, topic) == expected(0)
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            ask_broker(EpochQuery(f"kafka+ssl://{address}", topic).options)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with SecuredKafka(tmp_path_factory.mktemp("secured")) as cluster:
        yield cluster


def login(cluster: SecuredKafka, mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    return {
        SERVERS: f"kafka://{cluster.address('SASL_SSL')}",
        "tlsCaFile": str(cluster.certificate),
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": (
            f'{MODULES[mechanism]} required username="{WRITER}" password="{password}";'
        ),
    }


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mechanism", MODULES)
def test_spark_writes_to_apache_kafka_over_tls_with_a_log_in(
    spark: SparkSession, secured: SecuredKafka, tmp_path: Path, mechanism: str
) -> None:
    topic = create(secured.kafka, PARTITIONS)
    secured.permit(topic)
    write_and_look(spark, secured, login(secured, mechanism), topic, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_spark_writes_to_apache_kafka_over_tls_alone(
    spark: SparkSession, secured: SecuredKafka, tmp_path: Path
) -> None:
    options = {
        SERVERS: f"kafka+ssl://{secured.address('SSL')}",
        "tlsCaFile": str(secured.certificate),
    }
    write_and_look(spark, secured, options, create(secured.kafka, PARTITIONS), tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mechanism", MODULES)
def test_nobody_writes_with_a_wrong_password_or_without_rights(
    secured: SecuredKafka, mechanism: str
) -> None:
    topic = create(secured.kafka, PARTITIONS)
    for password, message in (("wrong", r"Correct the options kafka\.sasl"), (PASSWORD, "rights")):
        given = login(secured, mechanism, password)
        query = EpochQuery(given.pop(SERVERS), topic, **given)
        with pytest.raises(SinkError, match=message) as raised:
            ask_broker(query.options)
        assert password not in str(raised.value)
    assert values(secured.kafka, topic) == []


def write_and_look(
    spark: SparkSession, cluster: SecuredKafka, options: dict[str, str], topic: str, folder: Path
) -> None:
    """Write a batch, read it as a stream that writes it once more, and see all of it twice."""
    rows = spark.range(ROWS).selectExpr("CAST(id AS STRING) AS key", "CONCAT('v', id) AS value")
    rows.write.format("penstock").mode("append").options(**options, topic=topic).save()
    once = sorted(b"v%d" % number for number in range(ROWS))
    assert values(cluster.kafka, topic) == once
    reading = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "1000"}
    stream = spark.readStream.format("penstock").options(**options, **reading).load()
    query = (
        stream.select("key", "value")
        .writeStream.format("penstock")
        .options(**options, topic=topic, checkpointLocation=str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert values(cluster.kafka, topic) == sorted(once * 2)
