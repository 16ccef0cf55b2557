"""Imports an export in small batches, with the work of Spark in this process.

    python import_run.py KAFKA_ADDRESS FOLDER

A process of its own, which a test can kill.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from penstock.pipeline.logs import repacking
from penstock.pipeline.logs.importing import Importing
from spark_in_process import InProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH_BYTES = 1_000
"""So small that there are many moments to be killed in."""

if __name__ == "__main__":
    repacking.BATCH_BYTES = BATCH_BYTES  # type: ignore[misc]
    importing = Importing(sys.argv[1], Path(sys.argv[2]))
    importing.run(lambda: cast("SparkSession", InProcess()), lambda done, total: None)
