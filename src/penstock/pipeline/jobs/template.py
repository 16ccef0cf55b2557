"""The file that `penstock pipeline init` writes."""

from __future__ import annotations

from typing import Final

TEMPLATE: Final = """\
# A pipeline of Penstock: `penstock pipeline run {file}` runs it.
# What stands behind a # is left out or has the value that is shown.

[read]
server = "{server}"
topics = ["{topic}"]
# starting_offsets = "earliest"     # or "latest", or offsets as JSON
# read_mode = "auto"                # "log": segment files only; "wire": through the broker only
# headers = false
# ignore_data_loss = false

# [parse]                           # values become columns
# schema = "id BIGINT, price DOUBLE, placed TIMESTAMP"
#     or a file of Avro, JSON Schema or Protobuf, or the URL of a registry
# on_error = "fail"                 # "null", or "deadLetter"
# dead_letter = "{table}-rejected"  # a folder

# [[expect]]                        # any number of them, in this order
# name = "has a price"
# that = "price > 0"                # an SQL condition
# otherwise = "quarantine"          # "keep", "drop" or "fail"

# [deduplicate]
# by = ["id"]
# time = "placed"
# within = "10 minutes"             # what is later than that is dropped

[write]                             # a topic in place of a table: docs/spark-pipelines.md
table = "{table}"
# format = "parquet"                # "delta", "iceberg"
# mode = "append"                   # "upsert": the newest row of each key
# key = ["id"]
# changes = "rows"                  # "debezium": values are its envelopes
# partition_by = []

[run]
# every = "10 seconds"              # left out: the run ends when it has caught up
# batch_rows = 2_000_000
# master = "local[*]"
"""
