from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import py4j
import pyspark
import pytest

import pyspark_penstock
from penstock.pipeline.data_source import PenstockSource
from penstock.pipeline.session import (
    ARROW_OPTIONS,
    READS,
    JavaError,
    SessionError,
    check_java,
    open_session,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_finds_the_source_by_itself() -> None:
    assert "pyspark_penstock" in {module.name for module in pkgutil.iter_modules()}
    assert pyspark_penstock.DefaultSource is PenstockSource
    assert PenstockSource.name() == "penstock"


def test_who_reads_imports_nothing_of_the_sink() -> None:
    code = "import sys, pyspark_penstock; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert b"penstock.pipeline.source.readers" in loaded
    assert b"penstock.pipeline.sink" not in loaded


def test_the_java_of_this_machine_will_do() -> None:
    check_java()


def test_no_java_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match=r"no Java found in JAVA_HOME .* needs Java 17"):
        check_java()


@pytest.mark.parametrize("told", ['openjdk version "11.0.2" 2019-01-15', "not a Java at all"])
def test_a_java_that_is_too_old_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{told}' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match=f"{told}.*Spark needs Java 17 or newer"):
        check_java()


def test_a_job_over_spark_connect_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SessionError, match=r"cluster's own master in place of sc://host:15002,"):
        open_session("orders", "sc://host:15002")
    monkeypatch.setenv("SPARK_API_MODE", "connect")
    with pytest.raises(SessionError, match="unset SPARK_API_MODE, which is 'connect'"):
        open_session("orders")
    monkeypatch.setenv("SPARK_REMOTE", "sc://host:15002")
    with pytest.raises(SessionError, match="unset SPARK_REMOTE, which is 'sc://host:15002'"):
        open_session("orders")


def test_tasks_import_what_is_installed_and_compiled(spark: SparkSession) -> None:
    def imported(_: int) -> list[str | None]:
        return [pyspark.__file__, py4j.__file__]

    found = spark.sparkContext.parallelize([0], 1).map(imported).first()
    assert found == imported(0)


def test_the_page_names_what_sessions_of_ones_own_need() -> None:
    page = Path("docs/spark.md").read_text()
    assert f"`{ARROW_OPTIONS}`" in page
    for setting, value in READS.items():
        assert f"| `{setting}` | `{value}` |" in page


def test_our_sessions_have_what_the_page_advises(spark: SparkSession) -> None:
    settings = dict(spark.sparkContext.getConf().getAll())
    assert READS.items() <= settings.items()
    assert ARROW_OPTIONS in settings["spark.driver.extraJavaOptions"]
