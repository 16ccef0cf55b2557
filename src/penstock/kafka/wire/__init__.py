"""Kafka's messages as bytes and back, without I/O."""
