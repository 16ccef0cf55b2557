"""Iggy's commands as bytes and back, without I/O."""
