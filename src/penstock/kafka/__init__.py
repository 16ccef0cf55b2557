"""Apache Kafka's protocol."""
