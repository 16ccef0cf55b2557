"""Spark's own jars beside PySpark's, from Maven Central: the Kafka connector, and from_avro."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from versus.peers import maven

VERSION: Final = "4.2.0"
AVRO_VERSION: Final = "4.1.1"
_ARTIFACTS: Final = [
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{VERSION}",
    f"org.apache.spark:spark-avro_2.13:{AVRO_VERSION}",
]
_NEEDED: Final = (
    "spark-sql-kafka-0-10",
    "spark-token-provider-kafka-0-10",
    "spark-avro",
    "kafka-clients",
    "commons-pool2",
)
"""The others that Maven brings are Spark's own, which it has."""


def jars(cache: Path) -> list[Path]:
    """Return the jars that a session needs for both. Raises NotAvailableError."""
    libraries = maven.fetch(cache, "spark-jars", _ARTIFACTS)
    found = [jar for jar in libraries.glob("*.jar") if jar.name.startswith(_NEEDED)]
    assert len(found) == len(_NEEDED), found
    return sorted(found)
