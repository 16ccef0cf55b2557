"""What a sink can't do."""

from __future__ import annotations


class SinkError(Exception):
    """Rows can't be written; the message says which, or what to do."""


class UnreachableError(SinkError):
    """The broker does not answer."""
