"""Compaction by key: which records are the last of their keys, and what is left of batches."""
