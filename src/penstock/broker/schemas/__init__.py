"""Schemas of topics: their versions, and which of them may follow which."""
