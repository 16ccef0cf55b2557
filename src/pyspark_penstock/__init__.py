"""How Spark finds the data source `penstock` by itself.

PySpark 4 looks at every installed top-level package named `pyspark_*` for a `DefaultSource`.
"""

from penstock.pipeline.data_source import PenstockSource as DefaultSource

__all__ = ["DefaultSource"]
