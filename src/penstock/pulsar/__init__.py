"""Apache Pulsar's protocol."""
