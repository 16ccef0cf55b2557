"""Penstock's Spark source beside Spark's own Kafka source: `make versus SPARK=1`.

One run, one machine, the same rows: ours reads them from Penstock, Spark's from Apache Kafka. Each
case is a Spark application of its own (`application.py`), which does its work once to be warm and
once to be measured; the two sides of a comparison take turns. Where both read the same files they
take turns in one application: by chance Java compiles equal plans a fifth better in one than in
another.
"""
