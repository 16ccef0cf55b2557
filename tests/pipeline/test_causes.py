"""What Spark says of a failure is said without its traces."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import MagicMock

import pytest
from pyspark.errors import PySparkException

from penstock.pipeline.causes import cause_of
from penstock.pipeline.logs import audit as audits
from penstock.pipeline.logs.manifest import ExportError
from penstock.pipeline.logs.numbered import do_all

SAID = """Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times
Traceback (most recent call last):
  File "worker.py", line 1, in main
ModuleNotFoundError: Penstock is missing in the Python of Spark's worker on one

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException
"""
CAUSE = "Penstock is missing in the Python of Spark's worker on one"


def test_the_innermost_error_of_python_counts() -> None:
    assert cause_of(PySparkException(SAID)) == CAUSE
    assert cause_of(PySparkException("first line\nsecond line")) == "first line"


def test_what_fails_of_logs_is_said_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark, frame = MagicMock(), MagicMock()
    frame.mapInArrow.return_value.collect.side_effect = PySparkException(SAID)
    spark.range.return_value = spark.createDataFrame.return_value.repartition.return_value = frame
    with pytest.raises(ExportError, match=f"^{CAUSE}$"):
        do_all(spark, 1, abs)
    segment = audits.Segment(tmp_path, 0, 1)
    monkeypatch.setattr(audits, "segments_of", lambda _: [segment])
    with pytest.raises(audits.AuditError, match=f"^{CAUSE}$"):
        audits.audit(spark, tmp_path)
