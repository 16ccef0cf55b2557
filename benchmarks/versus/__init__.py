"""Penstock side by side with Apache Kafka, Apache Pulsar and Iggy, on one machine, in one run.

`python -m versus` measures and writes a result file; `python -m versus.report` makes
docs/benchmarks.md and its plots from one. Each broker runs alone; one client per protocol drives
both sides of a comparison.
"""
