"""Transactions: what is written in several places takes effect whole or not at all."""
