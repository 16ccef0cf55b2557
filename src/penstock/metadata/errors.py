"""What can go wrong with the database."""

from __future__ import annotations


class MetadataError(Exception):
    """The database refused or failed a read or a write; nothing of that write is kept.

    Its text is for clients and operators and holds no SQL; what the engine said is in the log.
    """
