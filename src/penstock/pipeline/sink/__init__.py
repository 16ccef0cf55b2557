"""Rows as records in topics: what Spark writes, exactly once."""
