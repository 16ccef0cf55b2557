"""What goes wrong with typed columns."""

from __future__ import annotations


class SchemaError(Exception):
    """A schema can't be had, or can't be that of columns; the message says what to do."""


class ParseError(Exception):
    """A record is not of its schema, and onParseError is fail; the message names the record."""
