"""Iggy's protocol."""
