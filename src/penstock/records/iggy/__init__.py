"""Iggy's batches of today's layout, to columns and back."""
