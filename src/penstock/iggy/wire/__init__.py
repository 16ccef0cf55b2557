"""Iggy's binary protocol as apache-iggy 0.9.0 speaks it: bytes to messages and back, no I/O."""
