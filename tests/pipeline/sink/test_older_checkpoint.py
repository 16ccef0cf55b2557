"""Goal: a stream with an older checkpoint loses no row and writes none twice, or does not go on.

Method: the checkpoint is copied before the last batch, and put back after it.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from apache_kafka import ApacheKafka
from apache_pulsar import ApachePulsar
from broker_process import BrokerProcess
from epoch_query import within_patience
from penstock.pipeline.jobs.config import PipelineConfig, TopicTarget
from penstock.pipeline.jobs.job import PipelineError, Run
from source_rows import rows_read
from spark_topics import create, fill, numbered

CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
REFUSED = "read other rows than it does now"
COUNTED = "written with another number of rows than it has now"


class Place:
    """A topic to write to, and the address that the sink is given."""

    def __init__(self, servers: str, topic: str) -> None:
        self.servers = servers
        self.topic = topic

    def has(self, rows: int) -> bool:
        """Whether it has v0, v1 and so on, each once."""
        names = sorted(b"v%d" % number for number in range(rows))
        return within_patience(lambda: self._values() == names)

    def _values(self) -> list[bytes]:
        return sorted(row["value"] for row in rows_read(self.servers, self.topic))


@pytest.fixture(
    params=["penstock", "pulsar's protocol"]
    + [pytest.param(each, marks=pytest.mark.soak) for each in ("apache kafka", "apache pulsar")]
)
def place(
    request: pytest.FixtureRequest,
    shared_server: BrokerProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Place]:
    if request.param == "apache kafka":
        with ApacheKafka(tmp_path_factory.mktemp("apache")) as cluster:
            yield Place(f"kafka://{cluster.kafka}", create(cluster.kafka, 2))
    elif request.param == "apache pulsar":
        with ApachePulsar(tmp_path_factory.mktemp("apache"), transactions=True) as broker:
            broker.create("older", 2)
            yield Place(f"pulsar://{broker.address}", "older")
    else:
        servers = shared_server.kafka if request.param == "penstock" else shared_server.pulsar
        yield Place(servers, create(shared_server.kafka, 2))


def rows_of(spark: SparkSession, server: BrokerProcess, topic: str) -> DataFrame:
    reading = spark.readStream.format("penstock").option("subscribe", topic)
    reading = reading.option("penstock.bootstrap.servers", server.kafka)
    return reading.option("startingOffsets", "earliest").load()


def stream(rows: DataFrame, place: Place, **options: str) -> None:
    query = rows.writeStream.format("penstock").trigger(availableNow=True)
    query.option("penstock.bootstrap.servers", place.servers).option("topic", place.topic).options(
        **options
    ).start().awaitTermination()


def for_java_alone(spark: SparkSession, folder: Path) -> str:
    """Return an address of a folder that says nothing to Python."""
    name = uuid.uuid4().hex
    spark.conf.set(f"fs.viewfs.mounttable.{name}.link./here", folder.as_uri())
    return f"viewfs://{name}/here"


def put_back(copy: Path, checkpoint: Path) -> None:
    shutil.rmtree(checkpoint)
    shutil.copytree(copy, checkpoint)


def check_older_checkpoints(
    run: Callable[[], object],
    more: Callable[[int, int], None],
    place: Place,
    checkpoint: Path,
    refused: str = REFUSED,
) -> None:
    """Put older checkpoints back; `more` adds rows to the source, from one number to another."""
    copy, newest = checkpoint.with_name("copy"), checkpoint.with_name("newest")
    more(0, 10)
    run()
    shutil.copytree(checkpoint, copy)
    more(10, 20)
    run()
    shutil.copytree(checkpoint, newest)
    more(20, 30)
    for _ in range(2):
        put_back(copy, checkpoint)
        with pytest.raises((StreamingQueryException, PipelineError), match=refused):
            run()
        assert place.has(20)
    put_back(newest, checkpoint)
    for _ in range(2):
        run()
        assert place.has(30)


def test_of_topics(
    spark: SparkSession, shared_server: BrokerProcess, place: Place, tmp_path: Path
) -> None:
    source, checkpoint = create(shared_server.kafka), tmp_path / "checkpoint"
    rows = rows_of(spark, shared_server, source)
    check_older_checkpoints(
        lambda: stream(rows, place, checkpointLocation=str(checkpoint)),
        lambda first, last: fill(shared_server.kafka, source, numbered(first, last)),
        place,
        checkpoint,
    )


def test_in_for_each_batch(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    source, checkpoint = create(shared_server.kafka), tmp_path / "checkpoint"
    place = Place(shared_server.kafka, create(shared_server.kafka))
    rows = rows_of(spark, shared_server, source)
    name = uuid.uuid4().hex

    def write(frame: DataFrame, batch: int) -> None:
        frame.write.format("penstock").mode("append").options(
            topic=place.topic, txnAppId=name, txnVersion=str(batch)
        ).option("penstock.bootstrap.servers", place.servers).save()

    def run() -> None:
        query = rows.writeStream.foreachBatch(write).trigger(availableNow=True)
        query.option("checkpointLocation", str(checkpoint)).start().awaitTermination()

    check_older_checkpoints(
        run,
        lambda first, last: fill(shared_server.kafka, source, numbered(first, last)),
        place,
        checkpoint,
        COUNTED,
    )


def test_where_only_java_can_read_the_checkpoint(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    source, checkpoint = create(shared_server.kafka), tmp_path / "checkpoint"
    place = Place(shared_server.kafka, create(shared_server.kafka))
    location = f"{for_java_alone(spark, tmp_path)}/checkpoint"

    def run(only: str = "true", **options: str) -> None:
        rows = rows_of(spark, shared_server, source).where(only)
        stream(rows, place, checkpointLocation=location, **options)

    fill(shared_server.kafka, source, numbered(0, 10))
    run()
    shutil.copytree(checkpoint, tmp_path / "newest")
    fill(shared_server.kafka, source, numbered(10, 20))
    for kind in ("offsets", "commits"):
        shutil.rmtree(checkpoint / kind)
    with pytest.raises(StreamingQueryException, match=COUNTED):
        run()
    assert place.has(10)
    put_back(tmp_path / "newest", checkpoint)
    shutil.rmtree(checkpoint / "commits")
    run()
    assert place.has(20), "a driver that died behind the decision is no older checkpoint"
    # A query that makes other rows of the same messages each time.
    (checkpoint / "commits" / "1").unlink()
    with pytest.raises(StreamingQueryException, match=COUNTED):
        run("offset < 19")
    run("offset < 19", failOnDataLoss="false")
    assert place.has(20)


def test_with_nothing_new_it_goes_on(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    source, checkpoint = create(shared_server.kafka), tmp_path / "checkpoint"
    place = Place(shared_server.kafka, create(shared_server.kafka))
    rows = rows_of(spark, shared_server, source)

    def run() -> None:
        stream(rows, place, checkpointLocation=str(checkpoint))

    fill(shared_server.kafka, source, numbered(0, 10))
    run()
    shutil.copytree(checkpoint, tmp_path / "copy")
    fill(shared_server.kafka, source, numbered(10, 20))
    run()
    put_back(tmp_path / "copy", checkpoint)
    run()
    assert place.has(20), "the same rows are the same batch"
    fill(shared_server.kafka, source, numbered(20, 30))
    run()
    assert place.has(30)


def test_a_copy_is_of_no_use_with_another_topic(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    source, checkpoint, copy = create(shared_server.kafka), tmp_path / "one", tmp_path / "copy"
    one, other = (Place(shared_server.kafka, create(shared_server.kafka)) for _ in range(2))
    rows = rows_of(spark, shared_server, source)
    fill(shared_server.kafka, source, numbered(0, 10))
    stream(rows, one, checkpointLocation=str(checkpoint))
    shutil.copytree(checkpoint, copy)
    fill(shared_server.kafka, source, numbered(10, 20))
    stream(rows, one, checkpointLocation=str(checkpoint))
    with pytest.raises(StreamingQueryException, match="was written to another topic"):
        stream(rows, other, checkpointLocation=str(copy))
    assert one.has(20)
    assert other.has(0)


def test_of_files_and_where_a_setting_names_the_checkpoint(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    place = Place(shared_server.kafka, create(shared_server.kafka))
    rows = spark.readStream.text(str(source))

    def more(first: int, last: int) -> None:
        text = "".join(f"v{number}\n" for number in range(first, last))
        (source / f"{first}.txt").write_text(text)

    spark.conf.set(CHECKPOINTS, str(tmp_path))
    try:
        check_older_checkpoints(
            lambda: stream(rows, place, queryName="files"), more, place, tmp_path / "files"
        )
    finally:
        spark.conf.unset(CHECKPOINTS)


def test_of_a_pipeline(spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path) -> None:
    address = shared_server.kafka
    source, target = create(address), create(address)
    state = tmp_path / "state"
    config = PipelineConfig(address, (source,), state, target_topic=TopicTarget(target, address))
    check_older_checkpoints(
        lambda: Run(config).run(lambda _: None),
        lambda first, last: fill(address, source, numbered(first, last)),
        Place(address, target),
        state / "_checkpoint",
    )
