"""Segments, indexes, flush and recovery of one partition's log."""
