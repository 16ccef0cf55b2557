"""Whole logs at once: checked, exported and imported."""
