"""Shared consumption: who has which messages, until when, and what is acknowledged."""
