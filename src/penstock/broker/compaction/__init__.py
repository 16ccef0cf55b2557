"""Compaction by key: which logs are due, and what looks after them."""
