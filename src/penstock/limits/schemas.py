"""The limits around schemas."""

from __future__ import annotations

from typing import Final

from penstock.limits.limit import KIB, MIB, Limit

SCHEMA_BYTES: Final = Limit(
    128 * KIB,
    "bytes of one schema: its name, its definition and its properties",
    protects="memory, and other clients' time while it is read",
    when_hit="the schema is refused",
)

SCHEMA_VERSIONS: Final = Limit(
    1_000,
    "versions of one topic's schema",
    protects="memory and the database from a client that makes a new one each time it comes",
    when_hit="the new version is refused",
)

SCHEMAS_BYTES: Final = Limit(
    64 * MIB,
    "bytes of all schemas together, which also count in the eighth of the budget for memory that "
    "is for what the database has too",
    protects="memory and the time of a start",
    when_hit="the new version is refused",
)

SCHEMA_DEPTH: Final = Limit(
    64,
    "definitions within each other in one schema",
    protects="the process from a definition without end",
    when_hit="the schema is refused",
)

SCHEMA_COMPARISONS: Final = Limit(
    20_000,
    "types that are held against each other to find whether one schema reads another: some tens "
    "of milliseconds in a thread",
    protects="other clients' time",
    when_hit="the schema is refused as incompatible",
)

SCHEMA_ORDINARY_BYTES: Final = Limit(
    16 * KIB,
    "bytes of schemas, with those that they are held against, in the first of two threads in which "
    "they are read",
    protects="clients with ordinary schemas from those with huge ones",
    when_hit="the schema waits for the second thread",
)

SCHEMA_READ_AT_ONCE_BYTES: Final = Limit(
    2 * KIB,
    "bytes of a schema that is read on the event loop",
    protects="other clients' time",
    when_hit="the schema is read in a thread",
)

SCHEMA_COMPARED_AT_ONCE_BYTES: Final = Limit(
    256,
    "bytes of two schemas that are held against each other on the event loop: the time grows with "
    "their square",
    protects="other clients' time",
    when_hit="they are held against each other in a thread",
)
