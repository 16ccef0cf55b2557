"""Clients of our own, blocking and small, on the protocols' own wire packages."""
