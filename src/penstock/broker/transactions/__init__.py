"""Transactions: what partitions and their readers make of them, and who decides."""
