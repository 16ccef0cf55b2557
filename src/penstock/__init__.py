"""Penstock: one message log for Kafka, Pulsar and Iggy clients, and for Spark."""

from typing import Final

__version__: Final = "0.1.0"
