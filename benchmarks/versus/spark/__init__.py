"""Penstock's Spark source beside Spark's own Kafka source: `make versus SPARK=1`.

One run, one machine, the same rows: ours reads them from Penstock, Spark's from Apache Kafka. Each
case is a Spark application of its own (`application.py`), which does its work once to be warm and
once to be measured; the two sides of a comparison take turns.
"""
