"""Pulsar's entries, to columns and back."""
