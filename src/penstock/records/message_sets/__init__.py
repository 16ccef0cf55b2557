"""Kafka's message sets of before 2017, to a batch of magic 2, and made of columns."""
