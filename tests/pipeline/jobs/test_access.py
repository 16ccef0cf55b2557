"""Goal: a pipeline's file says how its servers are reached, and holds no secret.

Method: files are loaded, and one is run on Penstock behind a proxy that speaks TLS, without a
Spark. `soak` has Spark write from there to a real broker of Apache Pulsar that asks for a token.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from apache_pulsar import ApachePulsar
from broker_process import BrokerProcess
from penstock.clients.access import Token
from penstock.pipeline.jobs.checks import CheckError, look
from penstock.pipeline.jobs.config import DefinitionError, PipelineConfig
from penstock.pipeline.jobs.definition import load
from penstock.pipeline.jobs.job import PipelineError, Run
from penstock.pipeline.jobs.recording import recorded
from penstock.pipeline.jobs.settings import source_options
from penstock.pipeline.jobs.to_topic import sink_options
from source_rows import rows_read
from spark_topics import create, fill, numbered
from tls_proxy import tls_in_front_of

READ = """
[read]
server = "kafka+ssl://{server}"
topics = ["{topic}"]
[read.access]
tlsCaFile = "{certificate}"
"""
JAAS = """
"kafka.sasl.mechanism" = "PLAIN"
"kafka.sasl.jaas.config" = '''org.apache.kafka.common.security.plain.PlainLoginModule required
username="me" password="$PASSWORD$$";'''
"""
TABLE = '[write]\ntable = "table"\n'
TOPIC = """
[write]
topic = "checked"
server = "pulsar://{pulsar}"
[write.access]
token = "${{TOKEN}}"
"""


def defined(folder: Path, text: str, **names: object) -> PipelineConfig:
    file = folder / "pipeline.toml"
    file.write_text(text.format(**names))
    return load(file)


def test_secrets_are_the_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"server": "here:9093", "topic": "orders", "certificate": "ca.pem", "pulsar": "here:1"}
    config = defined(tmp_path, READ + JAAS + TOPIC, **names)
    with pytest.raises(CheckError, match="PASSWORD of the environment, where there is no such"):
        look(config)
    monkeypatch.setenv("PASSWORD", 'a "$quoted" one')
    options = source_options(config)
    assert 'password="a "$quoted" one$"' in options["kafka.sasl.jaas.config"]
    assert options["tlsCaFile"] == str(tmp_path / "ca.pem")
    monkeypatch.setenv("TOKEN", "hidden")
    assert sink_options(config).address.access.login == Token("hidden")
    assert "hidden" not in repr(config)


@pytest.mark.parametrize(
    ("access", "error"),
    [
        ('tokens = "x"', r"nothing is called read\.access\.tokens: did you mean token"),
        ('subscribe = "x"', r"nothing is called read\.access\.subscribe"),
        ("token = 7", r"read\.access\.token must be a text; it is 7"),
        ('"kafka.transaction.timeout.ms" = "1"', "nothing is called"),
    ],
)
def test_what_is_no_such_option_is_refused(tmp_path: Path, access: str, error: str) -> None:
    read = '[read]\nserver = "here:9092"\ntopics = ["orders"]\n[read.access]\n'
    with pytest.raises(DefinitionError, match=error):
        defined(tmp_path, read + access + "\n" + TABLE)


def test_a_target_that_can_not_be_is_said_in_words(tmp_path: Path) -> None:
    names = {"server": "here:9093", "topic": "orders", "certificate": "ca.pem", "pulsar": "here:1"}
    with pytest.raises(PipelineError, match="TOKEN of the environment, where there is no such"):
        Run(defined(tmp_path, READ + TOPIC, **names))
    unknown = TOPIC.partition("[write.access]")[0].replace("pulsar://", "carrier://")
    with pytest.raises(PipelineError, match="carrier:// is unknown; known are kafka://"):
        Run(defined(tmp_path, READ + unknown, **names))


def test_a_table_is_not_reached_by_access(tmp_path: Path) -> None:
    names = {"server": "here:9093", "topic": "orders", "certificate": "ca.pem"}
    with pytest.raises(DefinitionError, match=r"write\.access must be left out"):
        defined(tmp_path, READ + TABLE + '[write.access]\ntoken = "t"\n', **names)


def test_a_dollar_that_names_nothing_is_refused(tmp_path: Path) -> None:
    names = {"server": "here:9093", "topic": "orders", "certificate": "ca.pem"}
    config = defined(tmp_path, READ + JAAS.replace("$PASSWORD", "my$ secret") + TABLE, **names)
    with pytest.raises(CheckError, match=r"write \$\$ for the letter itself") as raised:
        look(config)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("server", ["pulsar://here:6650", "pulsar+ssl://here:6651"])
def test_a_pipeline_that_would_read_where_nothing_is_counted_is_refused(
    tmp_path: Path, server: str
) -> None:
    config = PipelineConfig(server, ("orders",), tmp_path / "table", fail_on_data_loss=False)
    for begin in (look, lambda each: Run(each).run(print)):
        with pytest.raises((CheckError, PipelineError), match="can't read from pulsar://, for"):
            begin(config)
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_table_is_kept_over_tls(shared_server: BrokerProcess, tmp_path: Path) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 10))
    with tls_in_front_of(shared_server.kafka, tmp_path) as (address, certificate):
        names = {"server": address, "topic": topic, "certificate": certificate.name}
        config = defined(tmp_path, READ + TABLE, **names)
        assert Run(config).run(lambda _: None).rows == 10
        assert ds.dataset(tmp_path / "table", format="parquet").count_rows() == 10
        assert recorded(tmp_path / "table").access == config.access
        with pytest.raises(PipelineError, match="certificate verify failed"):
            Run(defined(tmp_path, READ.partition("[read.access]")[0] + TABLE, **names)).run(print)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_topic_of_apache_pulsar_is_written_with_a_token(
    spark: SparkSession,
    shared_server: BrokerProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 10))
    folder = tmp_path / "pulsar"
    folder.mkdir()
    with (
        tls_in_front_of(shared_server.kafka, tmp_path) as (address, certificate),
        ApachePulsar(folder, transactions=True, tokens=True) as pulsar,
    ):
        pulsar.create("checked", 2)
        names = {"server": address, "topic": topic, "certificate": certificate.name}
        config = defined(tmp_path, READ + TOPIC, pulsar=pulsar.address, **names)
        monkeypatch.setenv("TOKEN", "wrong")
        with pytest.raises(PipelineError, match="Correct the option token"):
            Run(config).run(lambda _: None)
        assert pulsar.token is not None
        monkeypatch.setenv("TOKEN", pulsar.token)
        assert Run(config).run(lambda _: None).rows == 10
        rows = rows_read(f"pulsar://{pulsar.address}", "checked", token=pulsar.token)
        assert sorted(row["value"] for row in rows) == sorted(v for _, v in numbered(0, 10))
