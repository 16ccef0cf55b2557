"""The Kafka client of Penstock's own commands and pipelines."""
