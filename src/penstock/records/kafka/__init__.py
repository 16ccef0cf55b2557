"""Kafka's record batches of magic 2, to columns and back."""
